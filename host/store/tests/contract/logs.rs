//! Log lines.

use stepwell_store::{LogLevel, LogLine};

use crate::support::{World, acme, at, run, tenant};

claims! {
    lines_come_back_in_order_and_numbered_by_run,
    lines_are_read_in_pages,
    another_tenants_lines_are_not_read,
}

fn line(number: u128, message: &str) -> LogLine {
    LogLine {
        tenant: acme(),
        run: run(number),
        at: at(20),
        level: LogLevel::Warn,
        message: message.to_owned(),
        fields: vec![("key".to_owned(), "value".to_owned())],
    }
}

async fn lines_come_back_in_order_and_numbered_by_run(world: World) {
    world.start(7, 10).await;
    world.start(8, 10).await;
    world
        .store
        .write_logs(vec![line(7, "a"), line(8, "b"), line(7, "c")])
        .await
        .unwrap();
    world.store.write_logs(vec![line(7, "d")]).await.unwrap();
    let rows = world.store.logs(&acme(), run(7), 0, 10).await.unwrap();
    let numbered: Vec<_> = rows
        .iter()
        .map(|row| (row.number, &*row.line.message))
        .collect();
    assert_eq!(numbered, [(1, "a"), (2, "c"), (3, "d")]);
    assert_eq!(rows[1].line, line(7, "c"));
    let other = world.store.logs(&acme(), run(8), 0, 10).await.unwrap();
    assert_eq!((other[0].number, &*other[0].line.message), (1, "b"));
}

async fn lines_are_read_in_pages(world: World) {
    world.start(7, 10).await;
    world
        .store
        .write_logs((0..5).map(|number| line(7, &number.to_string())).collect())
        .await
        .unwrap();
    let page = world.store.logs(&acme(), run(7), 2, 2).await.unwrap();
    assert_eq!(
        page.iter().map(|row| row.number).collect::<Vec<_>>(),
        [3, 4]
    );
    assert!(
        world
            .store
            .logs(&acme(), run(7), 5, 2)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn another_tenants_lines_are_not_read(world: World) {
    world.start(7, 10).await;
    world
        .store
        .write_logs(vec![line(7, "secret")])
        .await
        .unwrap();
    assert!(
        world
            .store
            .logs(&tenant("globex"), run(7), 0, 10)
            .await
            .unwrap()
            .is_empty()
    );
}
