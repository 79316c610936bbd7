//! The contract: what every body of the store promises, one claim a test, each over all bodies.
//!
//! To add a body, add it to `support::Body` and to the `claims!` macro; to add a claim, write a
//! function of a `World` and name it in its module's `claims!`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(missing_docs, reason = "the names of tests say what they claim")]

/// Makes a test of each claim for each body.
macro_rules! claims {
    ($($claim:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $claim() {
                super::$claim(crate::support::World::new(crate::support::Body::Memory).await).await;
            })*
        }

        mod sqlite {
            $(#[tokio::test]
            async fn $claim() {
                super::$claim(crate::support::World::new(crate::support::Body::Sqlite).await).await;
            })*
        }
    };
}

mod appends;
mod cancels;
mod claiming;
mod continued;
mod histories;
mod inboxes;
mod logs;
mod notices;
mod pauses;
mod reads;
mod starts;
mod support;
mod suspensions;
mod tenants;
mod terminates;
mod versions;
mod wakes;
