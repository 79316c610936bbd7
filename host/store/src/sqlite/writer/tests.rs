//! One command fails, or the commit does: who is told what, and what stays.

use std::sync::Arc;
use std::sync::mpsc;

use stepwell_core::id::{HostId, RunId};
use stepwell_core::time::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::change::Change;
use crate::log::LogLevel;
use crate::sqlite::{hosts, migrate};

struct Setting {
    writer: Arc<Writer>,
    notices: Arc<Notices>,
    _folder: TempDir,
}

fn setting() -> Setting {
    let folder = tempfile::tempdir().unwrap();
    let connection = migrate::open(&folder.path().join("test.sqlite")).unwrap();
    let notices = Arc::new(Notices::new());
    let writer = Writer::start(connection, Arc::clone(&notices)).unwrap();
    Setting {
        writer: Arc::new(writer),
        notices,
        _folder: folder,
    }
}

/// Work to be executed in one transaction with other work.
type Work = Box<dyn FnMut(&mut Tx<'_>) -> Result<()> + Send>;

impl Setting {
    /// Executes all of it in one transaction: they queue while the writer is busy with another.
    async fn together(&self, works: Vec<Work>) -> Vec<std::result::Result<(), Error>> {
        let (release, held) = mpsc::channel::<()>();
        let (began, begins) = mpsc::channel();
        let hold = self.spawn(Box::new(move |_| {
            began.send(()).unwrap();
            let _ = held.recv();
            Ok(())
        }));
        tokio::task::spawn_blocking(move || begins.recv().unwrap())
            .await
            .unwrap();
        let calls: Vec<_> = works.into_iter().map(|work| self.spawn(work)).collect();
        // In this runtime of one thread, each call is queued when it is first polled.
        tokio::task::yield_now().await;
        release.send(()).unwrap();
        hold.await.unwrap().unwrap();
        let mut answers = Vec::new();
        for call in calls {
            answers.push(call.await.unwrap());
        }
        answers
    }

    fn spawn(&self, work: Work) -> tokio::task::JoinHandle<std::result::Result<(), Error>> {
        let writer = Arc::clone(&self.writer);
        tokio::spawn(async move { writer.call("test", work).await })
    }

    /// The hosts that have rows, which is what the work of these tests writes.
    async fn rows(&self) -> Vec<i64> {
        self.writer
            .call("read", |tx| {
                let mut statement = tx
                    .rows()
                    .prepare("SELECT lease_until FROM hosts ORDER BY host")?;
                let rows = statement.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            })
            .await
            .unwrap()
    }
}

fn write(tx: &mut Tx<'_>, number: u64) -> Result<()> {
    hosts::renew(
        tx.rows(),
        HostId::from_raw(number.into()),
        Timestamp::from_ms(number),
    )?;
    let run = RunId::from_raw(number.into());
    tx.touched(run, Some(Change::Ready { run }));
    Ok(())
}

fn writes(number: u64) -> Work {
    Box::new(move |tx| write(tx, number))
}

fn told(changes: &mut tokio::sync::broadcast::Receiver<Change>) -> Vec<u128> {
    let each = std::iter::from_fn(|| changes.try_recv().ok());
    each.map(|change| match change {
        Change::Ready { run } => run.raw(),
        other => panic!("{other:?}"),
    })
    .collect()
}

#[tokio::test]
async fn commands_that_queue_share_a_commit() {
    let setting = setting();
    let answers = setting.together((1..=50).map(writes).collect()).await;
    assert!(answers.iter().all(std::result::Result::is_ok));
    assert_eq!(setting.writer.counts().commits, 1);
    assert_eq!(setting.rows().await, (1..=50).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_command_that_panics_leaves_nothing_and_the_others_are_written() {
    let setting = setting();
    let mut changes = setting.notices.changes();
    let panics: Work = Box::new(|tx| {
        write(tx, 2)?;
        panic!("a bug");
    });
    let answers = setting.together(vec![writes(1), panics, writes(3)]).await;
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert!(
        matches!(answers[1], Err(Error::Unavailable { .. })),
        "{answers:?}"
    );
    assert_eq!(setting.rows().await, [1, 3]);
    assert_eq!(told(&mut changes), [1, 3]);
}

#[tokio::test]
async fn a_command_that_fails_after_it_has_written_leaves_nothing_and_the_others_are_written() {
    let setting = setting();
    let mut changes = setting.notices.changes();
    let damaged = || Error::Damaged {
        what: "it".to_owned(),
        detail: "so".to_owned(),
    };
    let late: Work = Box::new(move |tx| {
        write(tx, 2)?;
        Err(damaged().into())
    });
    let unfit: Work = Box::new(|tx| {
        write(tx, 3)?;
        tx.rows()
            .execute("INSERT INTO hosts (host, lease_until) VALUES (NULL, 1)", [])?;
        Ok(())
    });
    let answers = setting
        .together(vec![writes(1), late, unfit, writes(4)])
        .await;
    assert!(answers[0].is_ok() && answers[3].is_ok(), "{answers:?}");
    assert!(
        matches!(answers[1], Err(Error::Damaged { .. })),
        "{answers:?}"
    );
    assert!(
        matches!(answers[2], Err(Error::Unavailable { .. })),
        "{answers:?}"
    );
    assert_eq!(setting.rows().await, [1, 4]);
    assert_eq!(told(&mut changes), [1, 4]);
}

#[tokio::test]
async fn a_refusal_disturbs_nobody() {
    let setting = setting();
    let refused: Work = Box::new(|tx| {
        let run = RunId::from_raw(9);
        let _ = tx.rows();
        Err(Error::CancelRequested { run }.into())
    });
    let answers = setting.together(vec![writes(1), refused, writes(3)]).await;
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert!(
        matches!(answers[1], Err(Error::CancelRequested { .. })),
        "{answers:?}"
    );
    assert_eq!(setting.writer.counts().commits, 1);
}

#[tokio::test]
async fn a_full_disk_fails_everybody_in_the_commit_and_the_writer_goes_on() {
    let setting = setting();
    setting
        .writer
        .call("test", |tx| write(tx, 1))
        .await
        .unwrap();
    let mut changes = setting.notices.changes();
    let limit = |pages: i64| -> Work {
        Box::new(move |tx| {
            tx.rows()
                .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
            Ok(())
        })
    };
    // No page more than there are.
    setting.writer.call("test", limit(1)).await.unwrap();
    let fills: Work = Box::new(|tx| {
        tx.rows().execute(
            "INSERT INTO components VALUES (1, 1, x'00', zeroblob(1000000))",
            [],
        )?;
        Ok(())
    });
    let answers = setting.together(vec![writes(2), fills, writes(3)]).await;
    for answer in &answers {
        assert!(
            matches!(answer, Err(Error::Unavailable { action: "test", .. })),
            "{answer:?}"
        );
    }
    assert_eq!(told(&mut changes), []);
    assert_eq!(setting.rows().await, [1]);

    setting.writer.call("test", limit(1_000_000)).await.unwrap();
    setting
        .writer
        .call("test", |tx| write(tx, 4))
        .await
        .unwrap();
    assert_eq!(setting.rows().await, [1, 4]);
    assert_eq!(told(&mut changes), [4]);
}

#[tokio::test]
async fn log_lines_that_cannot_be_written_fail_nobody() {
    let setting = setting();
    let line = LogLine {
        tenant: "acme".parse().unwrap(),
        run: RunId::from_raw(1),
        at: Timestamp::EPOCH,
        level: LogLevel::Info,
        message: "hello".to_owned(),
        fields: Vec::new(),
    };
    setting
        .writer
        .call("test", |tx| {
            Ok(tx
                .rows()
                .execute("ALTER TABLE logs RENAME TO elsewhere", [])?)
        })
        .await
        .unwrap();
    setting.writer.queue_logs(vec![line.clone()]);
    setting
        .writer
        .call("test", |tx| write(tx, 1))
        .await
        .unwrap();
    assert_eq!(setting.rows().await, [1]);

    // And a disk that is too full for them may have room for the rest.
    let fill: Work = Box::new(|tx| {
        tx.rows()
            .execute("ALTER TABLE elsewhere RENAME TO logs", [])?;
        tx.rows()
            .query_row("PRAGMA max_page_count = 1", [], |_| Ok(()))?;
        Ok(())
    });
    setting.writer.call("test", fill).await.unwrap();
    setting.writer.queue_logs(vec![LogLine {
        message: "x".repeat(1_000_000),
        ..line
    }]);
    setting
        .writer
        .call("test", |tx| write(tx, 2))
        .await
        .unwrap();
    assert_eq!(setting.rows().await, [1, 2]);
}

#[tokio::test]
async fn dropping_the_writer_writes_what_has_queued() {
    let Setting {
        writer,
        _folder: folder,
        ..
    } = setting();
    for number in 1..=20 {
        let mut call = std::pin::pin!(writer.call("test", move |tx| write(tx, number)));
        // Queued when it is first polled, and then given up.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = call.as_mut().poll(&mut context);
    }
    drop(writer);
    let connection = Connection::open(folder.path().join("test.sqlite")).unwrap();
    let rows: i64 = connection
        .query_row("SELECT count(*) FROM hosts", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 20);
}
