//! Why work inside a transaction stops: an answer for the caller, or a failure of the database.

use rusqlite::ErrorCode;

use crate::codec;
use crate::error::Error;

/// Why work inside a transaction stopped.
#[derive(Debug)]
pub(super) enum Fault {
    /// The caller's condition does not hold, or a row is damaged: the answer is known.
    Answer(Error),
    /// SQLite refused.
    Sqlite(rusqlite::Error),
}

/// The result of work inside a transaction.
pub(super) type Result<T> = std::result::Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Answer(error)
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Fault {
    /// A value that cannot be read as what it must be.
    pub(super) fn damaged(what: impl Into<String>, detail: impl ToString) -> Self {
        Self::Answer(Error::Damaged {
            what: what.into(),
            detail: detail.to_string(),
        })
    }

    /// The error that says that something is damaged, if that is what this is.
    pub(super) fn into_damage(self) -> std::result::Result<Error, Self> {
        match self {
            Self::Answer(damaged @ Error::Damaged { .. }) => Ok(damaged),
            Self::Answer(_) => Err(self),
            Self::Sqlite(error) => match from_sqlite("read a row", &error) {
                damaged @ Error::Damaged { .. } => Ok(damaged),
                _ => Err(Self::Sqlite(error)),
            },
        }
    }

    /// What the caller is told.
    pub(super) fn into_error(self, action: &'static str) -> Error {
        match self {
            Self::Answer(error) => error,
            Self::Sqlite(error) => from_sqlite(action, &error),
        }
    }
}

/// What a caller is told about a failure of SQLite.
pub(super) fn from_sqlite(action: &'static str, error: &rusqlite::Error) -> Error {
    let detail = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Damaged {
            what: "the database".to_owned(),
            detail,
        },
        _ => match error {
            rusqlite::Error::QueryReturnedNoRows => Error::Damaged {
                what: "the database".to_owned(),
                detail: "a row is missing that another one names".to_owned(),
            },
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => Error::Damaged {
                what: "a row".to_owned(),
                detail,
            },
            _ => Error::Unavailable { action, detail },
        },
    }
}

/// Names what was decoded, for the message.
pub(super) trait OrDamaged<T> {
    /// A failure to decode `what` is damage.
    fn or_damaged(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> OrDamaged<T> for std::result::Result<T, codec::Error> {
    fn or_damaged(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Fault::damaged(what(), error))
    }
}
