//! What is accepted, and each reason for which a component is not.

use std::sync::Arc;
use std::time::Duration;

use stepwell_core::limits::Limits;
use stepwell_sandbox::guest::{Exit, TrapKind};
use stepwell_sandbox::{CheckError, Error, Rejected};

use crate::small::{Small, small};
use crate::support::{Run, raw_guest, sandbox};

async fn rejected_with(bytes: impl Into<Arc<[u8]>>, limits: &Limits) -> Rejected {
    match sandbox().check(bytes.into(), limits).await {
        Err(CheckError::Rejected(rejected)) => rejected,
        other => panic!("{other:?}"),
    }
}

async fn rejected(bytes: impl Into<Arc<[u8]>>) -> Rejected {
    rejected_with(bytes, &Limits::default()).await
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

#[tokio::test]
async fn a_component_is_accepted_with_what_it_says_it_offers() {
    let checked = sandbox().check(small(), &Limits::default()).await.unwrap();
    assert_eq!(checked.manifest.workflows[0].name, "w");

    let checked = sandbox()
        .check(raw_guest(), &Limits::default())
        .await
        .unwrap();
    assert!(
        checked
            .manifest
            .workflows
            .iter()
            .any(|workflow| workflow.name == "nap")
    );
    assert!(
        checked
            .manifest
            .tasks
            .iter()
            .any(|task| task.name == "echo")
    );
    assert!(sandbox().cached(checked.digest).is_some());
}

#[tokio::test]
async fn more_bytes_than_the_limit_are_refused_before_they_are_looked_at() {
    let limits = Limits {
        component_bytes_max: 10,
        ..Limits::default()
    };
    let rejected = rejected_with(raw_guest(), &limits).await;
    assert!(
        matches!(rejected, Rejected::TooLarge { limit: 10, .. }),
        "{rejected}"
    );
    assert!(
        rejected.to_string().contains("the limit is 10 bytes"),
        "{rejected}"
    );
}

#[tokio::test]
async fn what_is_not_a_component_is_refused_with_advice() {
    let text = rejected(b"hello".to_vec()).await;
    assert!(matches!(text, Rejected::NotWebAssembly), "{text}");
    let module = rejected(wat("(module)")).await;
    assert!(matches!(module, Rejected::CoreModule), "{module}");
    assert!(
        module.to_string().contains("--target wasm32-wasip2"),
        "{module}"
    );
}

#[tokio::test]
async fn what_is_not_valid_is_refused_with_what_is_wrong() {
    let cut = raw_guest()[..100_000].to_vec();
    let cut = rejected(cut).await;
    assert!(matches!(cut, Rejected::Invalid(_)), "{cut}");

    let ill_typed = wat(r#"(component
            (core module (func (result i32) i64.const 0))
            (instance $guest)
            (export "stepwell:workflow/guest@0.1.0" (instance $guest))
        )"#);
    let ill_typed = rejected(ill_typed).await;
    assert!(matches!(ill_typed, Rejected::Invalid(_)), "{ill_typed}");
    assert!(
        ill_typed.to_string().contains("type mismatch"),
        "{ill_typed}"
    );
}

#[tokio::test]
async fn an_import_that_nobody_is_given_is_refused_by_name() {
    for import in [
        "wasi:sockets/tcp@0.2.0",
        "acme:bank/ledger@1.0.0",
        "wasi:clocks/monotonic-clock@0.3.0",
    ] {
        let bytes = wat(&format!(r#"(component (import "{import}" (instance)))"#));
        let rejected = rejected(bytes).await;
        assert!(
            matches!(rejected, Rejected::ForbiddenImport { .. }),
            "{rejected}"
        );
        assert!(rejected.to_string().contains(import), "{rejected}");
    }
}

#[tokio::test]
async fn another_version_of_the_contract_is_refused() {
    for interface in [
        r#"(import "stepwell:workflow/durable@0.2.0" (instance))"#,
        r#"(instance $guest) (export "stepwell:workflow/guest@0.2.0" (instance $guest))"#,
    ] {
        let rejected = rejected(wat(&format!("(component {interface})"))).await;
        assert!(
            matches!(rejected, Rejected::ContractVersion { .. }),
            "{rejected}"
        );
        assert!(
            rejected.to_string().contains("offers version 0.1.0"),
            "{rejected}"
        );
    }
}

#[tokio::test]
async fn a_component_without_the_export_is_refused_and_told_what_it_exports() {
    let none = rejected(wat("(component)")).await;
    assert!(none.to_string().contains("it exports nothing"), "{none}");
    let other = rejected(wat(
        r#"(component (instance $run) (export "wasi:cli/run@0.2.0" (instance $run)))"#,
    ))
    .await;
    assert!(matches!(other, Rejected::MissingExport { .. }), "{other}");
    assert!(
        other.to_string().contains("it exports wasi:cli/run@0.2.0"),
        "{other}"
    );
}

#[tokio::test]
async fn other_signatures_than_the_contracts_are_refused() {
    let import = r#"(import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func (result string)))))"#;
    for import in ["", import] {
        let bytes = wat(&format!(
            r#"(component {import} (instance $guest) (export "stepwell:workflow/guest@0.1.0" (instance $guest)))"#
        ));
        let rejected = rejected(bytes).await;
        assert!(matches!(rejected, Rejected::Unlinkable(_)), "{rejected}");
    }
}

#[tokio::test]
async fn a_describe_that_does_not_answer_is_refused() {
    let traps = rejected(
        Small {
            describe: "unreachable",
            ..Small::default()
        }
        .build(),
    )
    .await;
    assert!(
        matches!(&traps, Rejected::DescribeTrapped(trap) if trap.kind == TrapKind::Panic),
        "{traps}"
    );

    let endless = Small {
        describe: "(loop (br 0)) unreachable",
        ..Small::default()
    }
    .build();
    let limits = Limits {
        cpu_max: Duration::from_millis(100),
        ..Limits::default()
    };
    let endless = rejected_with(endless, &limits).await;
    assert!(
        matches!(&endless, Rejected::DescribeTrapped(trap) if trap.kind == TrapKind::CpuLimit),
        "{endless}"
    );

    let greedy = Small {
        describe: "i32.const 2000 memory.grow",
        ..Small::default()
    }
    .build();
    let greedy = rejected(greedy).await;
    assert!(
        matches!(&greedy, Rejected::DescribeTrapped(trap) if trap.kind == TrapKind::MemoryLimit),
        "{greedy}"
    );

    let nonsense = rejected(
        Small {
            describe: "i32.const -1",
            ..Small::default()
        }
        .build(),
    )
    .await;
    assert!(
        matches!(nonsense, Rejected::DescribeTrapped(_)),
        "{nonsense}"
    );
}

#[tokio::test]
async fn a_describe_that_asks_for_something_is_refused() {
    let asks = Small {
        imports: r#"(import "stepwell:workflow/durable@0.1.0" "now" (func $now (result i64)))"#,
        describe: "call $now drop i32.const 4096",
        ..Small::default()
    };
    let asks = rejected(asks.build()).await;
    assert!(
        matches!(&asks, Rejected::DescribeTrapped(trap) if trap.kind == TrapKind::Misuse),
        "{asks}"
    );
    assert!(
        asks.to_string().contains("`now` was called in `describe`"),
        "{asks}"
    );
}

#[tokio::test]
async fn an_empty_or_endless_manifest_is_refused() {
    let empty = rejected(
        Small {
            describe: "i32.const 8192",
            ..Small::default()
        }
        .build(),
    )
    .await;
    assert!(matches!(empty, Rejected::NoWorkflow), "{empty}");
    let limits = Limits {
        manifest_bytes_max: 100,
        ..Limits::default()
    };
    let long = rejected_with(raw_guest(), &limits).await;
    assert!(
        matches!(long, Rejected::ManifestTooLarge { limit: 100, .. }),
        "{long}"
    );
}

#[tokio::test]
async fn more_memory_than_the_limit_from_the_start_is_refused() {
    let limits = Limits {
        memory_bytes_max: 60_000,
        ..Limits::default()
    };
    let large = rejected_with(small(), &limits).await;
    assert!(
        matches!(&large, Rejected::DescribeTrapped(trap) if trap.kind == TrapKind::MemoryLimit),
        "{large}"
    );
}

#[tokio::test]
async fn a_table_over_its_limit_traps() {
    let grows = Small {
        fields: "(table $t 1 funcref)".to_owned(),
        run: "ref.null func i32.const 30000 table.grow $t",
        ..Small::default()
    };
    let guest = sandbox()
        .check(grows.build(), &Limits::default())
        .await
        .unwrap()
        .component;
    match Run::of("w").exit_in(&*guest).await {
        Exit::Trapped(trap) => {
            assert_eq!(trap.kind, TrapKind::MemoryLimit);
            assert!(
                trap.message.contains("limit is 20000 elements"),
                "{}",
                trap.message
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn bytes_that_are_not_the_components_are_not_loaded() {
    let digest = sandbox()
        .check(raw_guest(), &Limits::default())
        .await
        .unwrap()
        .digest;
    let other = stepwell_core::id::ComponentDigest::from_bytes([1; 32]);
    match sandbox().load(other, raw_guest()).await {
        Err(Error::WrongBytes { expected, found }) => {
            assert_eq!((expected, found), (other, digest));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn calls_at_the_same_time_compile_once() {
    let sandbox = stepwell_sandbox::Sandbox::new(stepwell_sandbox::Config {
        instances_max: 10,
        ..stepwell_sandbox::Config::default()
    })
    .unwrap();
    let limits = Limits::default();
    let load = || sandbox.check(small(), &limits);
    let (first, second, third) = tokio::join!(load(), load(), load());
    let (first, second, third) = (
        first.unwrap().component,
        second.unwrap().component,
        third.unwrap().component,
    );
    assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&second, &third));
}

#[tokio::test]
async fn the_least_recently_used_component_leaves_memory_first() {
    let sandbox = stepwell_sandbox::Sandbox::new(stepwell_sandbox::Config {
        instances_max: 10,
        components_max: 2,
        ..stepwell_sandbox::Config::default()
    })
    .unwrap();
    let mut digests = Vec::new();
    for run in ["unreachable", "i32.const 0", "i32.const 8"] {
        let component = Small {
            run,
            ..Small::default()
        }
        .build();
        digests.push(
            sandbox
                .check(component, &Limits::default())
                .await
                .unwrap()
                .digest,
        );
        assert!(
            sandbox.cached(digests[0]).is_some(),
            "the first is used all the time"
        );
    }
    assert!(sandbox.cached(digests[1]).is_none());
    assert!(sandbox.cached(digests[2]).is_some());
}
