//! smoke
#![allow(clippy::unwrap_used, reason = "tests")]
use std::sync::Arc;
use stepwell_core::id::*;
use stepwell_core::journal::*;
use stepwell_core::payload::Payload;
use stepwell_core::time::Timestamp;
use stepwell_store::*;

async fn smoke(store: impl Store) {
    let tenant: TenantName = "acme".parse().unwrap();
    let workflow: WorkflowName = "order".parse().unwrap();
    let label: VersionLabel = "1".parse().unwrap();
    let digest = "a8c0b6e7b8a4a5b1f6d7a8c0b6e7b8a4a5b1f6d7a8c0b6e7b8a4a5b1f6d7aaaa"
        .parse()
        .unwrap();
    let at = Timestamp::from_ms(5);
    let r = store
        .register(NewVersion {
            tenant: tenant.clone(),
            label: label.clone(),
            digest,
            component: Arc::from(&b"x"[..]),
            workflows: vec![(workflow.clone(), "{}".into())],
            environment: vec![("a".into(), "b".into())],
            at,
        })
        .await
        .unwrap();
    assert_eq!(r, Registered::New);
    println!(
        "{:?}",
        store.version(&tenant, &workflow, None).await.unwrap()
    );
    let host = HostId::from_raw(7);
    store
        .renew_lease(host, Timestamp::from_ms(1000))
        .await
        .unwrap();
    let run = RunId::from_raw(9);
    let c = store
        .start(
            NewRun {
                tenant: tenant.clone(),
                run,
                workflow,
                label,
                digest,
                input: Payload::null(),
                input_digest: [0; 32],
                idempotency_key: Some("k".into()),
                start_at: None,
                at,
            },
            Some(host),
        )
        .await
        .unwrap();
    println!("{c:?}");
    let Started::Created(Some(c)) = c else {
        panic!()
    };
    let e = Entry {
        at,
        record: Record::StepCompleted {
            operation: Operation(0),
            name: "x".into(),
            attempts: 1,
            output: Payload::null(),
        },
    };
    store
        .append(Append {
            run,
            epoch: c.epoch,
            next: c.next,
            entries: vec![e.clone()],
            inbox_seen: EventId(0),
            cancel_seen: false,
            then: Then::Run,
            at,
        })
        .await
        .unwrap();
    println!(
        "{:?}",
        store.history(&tenant, run, Sequence(0), 10).await.unwrap()
    );
    store
        .append(Append {
            run,
            epoch: c.epoch,
            next: Sequence(1),
            entries: vec![Entry {
                at,
                record: Record::Ended(Ending::Completed(Payload::null())),
            }],
            inbox_seen: EventId(0),
            cancel_seen: false,
            then: Then::End,
            at,
        })
        .await
        .unwrap();
    println!(
        "{:?} {:?}",
        store.run(&tenant, run).await.unwrap(),
        store.counts()
    );
}
#[tokio::test]
async fn s() {
    let d = tempfile::tempdir().unwrap();
    smoke(SqliteStore::open(d.path()).unwrap()).await;
    smoke(MemoryStore::new()).await;
}
