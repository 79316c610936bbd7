//! Core values as columns, and back.

use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use stepwell_core::id::{ComponentDigest, HostId, RunId};
use stepwell_core::time::Timestamp;

/// A number as SQLite keeps it. What does not fit becomes the greatest that does: only a time
/// "never" can be as great.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column value that stands for a core value.
pub(super) struct Column<T>(pub(super) T);

macro_rules! id_column {
    ($id:ty) => {
        impl FromSql for Column<$id> {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                <[u8; 16]>::column_result(value)
                    .map(u128::from_be_bytes)
                    .map(<$id>::from_raw)
                    .map(Self)
            }
        }
    };
}

id_column!(RunId);
id_column!(HostId);

impl FromSql for Column<ComponentDigest> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value)
            .map(ComponentDigest::from_bytes)
            .map(Self)
    }
}

impl FromSql for Column<u64> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = i64::column_result(value)?;
        u64::try_from(number)
            .map(Self)
            .map_err(|_| FromSqlError::OutOfRange(number))
    }
}

impl FromSql for Column<Timestamp> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Column::<u64>::column_result(value).map(|number| Self(Timestamp::from_ms(number.0)))
    }
}

/// A name or another value that is kept as text.
pub(super) struct Text<T>(pub(super) T);

impl<T> FromSql for Text<T>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value
            .as_str()?
            .parse()
            .map(Self)
            .map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

/// Reads columns as core values.
pub(super) trait Columns {
    /// A column that stands for a core value.
    fn value<T>(&self, column: usize) -> rusqlite::Result<T>
    where
        Column<T>: FromSql;

    /// The same, where there may be none.
    fn option<T>(&self, column: usize) -> rusqlite::Result<Option<T>>
    where
        Column<T>: FromSql;

    /// A name or another value that is kept as text.
    fn text<T>(&self, column: usize) -> rusqlite::Result<T>
    where
        Text<T>: FromSql;
}

impl Columns for Row<'_> {
    fn value<T>(&self, column: usize) -> rusqlite::Result<T>
    where
        Column<T>: FromSql,
    {
        self.get::<_, Column<T>>(column).map(|value| value.0)
    }

    fn option<T>(&self, column: usize) -> rusqlite::Result<Option<T>>
    where
        Column<T>: FromSql,
    {
        Ok(self
            .get::<_, Option<Column<T>>>(column)?
            .map(|value| value.0))
    }

    fn text<T>(&self, column: usize) -> rusqlite::Result<T>
    where
        Text<T>: FromSql,
    {
        self.get::<_, Text<T>>(column).map(|value| value.0)
    }
}

/// A run's id as its column.
pub(super) fn key(run: RunId) -> [u8; 16] {
    run.raw().to_be_bytes()
}

/// A host's id as its column.
pub(super) fn host_key(host: HostId) -> [u8; 16] {
    host.raw().to_be_bytes()
}

/// A time as its column.
pub(super) fn time(at: Timestamp) -> i64 {
    int(at.as_ms())
}
