//! The HTTP API as a client sees it: a real server on loopback, a real engine behind it.

mod api;

use std::time::{Duration, Instant};

use insta::{assert_json_snapshot, assert_snapshot};
use serde_json::json;
use stepwell_core::limits::Limits;
use stepwell_engine::Config;

use crate::in_process::World;
use api::{Api, Request, redacted, redacted_json};

#[tokio::test(flavor = "multi_thread")]
async fn problems_say_what_was_asked_what_was_found_and_what_to_do() {
    let api = Api::new().await;
    api.world.register("guest-steps", "1.0", &[]).await;
    let run = api.start("steps", r#"{"count":1}"#);
    api.ended(&run);
    let missing = "/v1/runs/run_00000000000000000000000000000000";
    let cancel = format!("/v1/runs/{run}/cancel");
    let event = format!("/v1/runs/{run}/events/go");
    let cases: &[(&str, &str, &str)] = &[
        ("GET", "/", ""),
        ("GET", "/v2/runs", ""),
        ("DELETE", "/v1/runs", ""),
        ("GET", "/v1/runs/nonsense", ""),
        ("GET", missing, ""),
        ("GET", "/v1/runs?limit=0", ""),
        ("GET", "/v1/runs?limit=many", ""),
        ("GET", "/v1/runs?colour=red", ""),
        ("GET", "/v1/runs?status=done", ""),
        (
            "GET",
            "/v1/runs?before=host_00000000000000000000000000000000",
            "",
        ),
        ("GET", "/v1/workflows/nothing/versions", ""),
        ("POST", "/v1/workflows/nothing/runs", "{}"),
        ("POST", "/v1/workflows/not%20a%20name/runs", "{}"),
        (
            "POST",
            "/v1/workflows/steps/runs",
            r#"{"version":"9.9","input":{"count":1}}"#,
        ),
        (
            "POST",
            "/v1/workflows/steps/runs",
            r#"{"input":{"count":"two"}}"#,
        ),
        ("POST", "/v1/workflows/steps/runs", "{\"input\":\n  oops}"),
        ("POST", "/v1/workflows/steps/runs", r#"{"inptu":1}"#),
        (
            "POST",
            "/v1/workflows/steps/runs",
            r#"{"input":1,"input_base64":"AA=="}"#,
        ),
        (
            "POST",
            "/v1/workflows/steps/runs",
            r#"{"input_base64":"?"}"#,
        ),
        (
            "POST",
            "/v1/workflows/steps/runs",
            r#"{"start_at":"tomorrow"}"#,
        ),
        ("POST", "/v1/workflows/steps/runs", r#"{"delay":"a while"}"#),
        ("POST", "/v1/workflows/steps/runs", r#"{"delay":-1}"#),
        (
            "POST",
            "/v1/workflows/steps/runs",
            r#"{"start_at":"2026-03-01T12:00:00Z","delay":1}"#,
        ),
        (
            "POST",
            "/v1/workflows/steps/runs",
            r#"{"idempotency_key":""}"#,
        ),
        ("POST", &cancel, "{}"),
        ("POST", &event, "{}"),
        (
            "POST",
            &format!("/v1/runs/{run}/pause"),
            r#"{"reason":"x"}"#,
        ),
        ("PUT", "/v1/versions/1.0", "not wasm"),
        ("PUT", "/v1/versions/1.0?env=NOTHING", "not wasm"),
        ("PUT", "/v1/versions/1.0?colour=red", "not wasm"),
        ("PUT", "/v1/versions/a%2Fb", "not wasm"),
    ];
    let mut drawn = String::new();
    for (method, path, body) in cases {
        let headers: &[_] = if body.is_empty() {
            &[]
        } else {
            &[("content-type", "application/json")]
        };
        let answer = api.ask(&Request {
            method,
            path,
            headers,
            body: body.as_bytes(),
        });
        assert_eq!(
            answer.header("content-type"),
            "application/problem+json",
            "{method} {path}: {}",
            answer.text
        );
        let problem = answer.json();
        assert_eq!(problem["status"], answer.status, "{method} {path}");
        drawn.push_str(&format!("{method} {path} {body}\n{problem:#}\n\n"));
    }
    assert_snapshot!(redacted(&drawn));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_is_told_the_right_ones() {
    let api = Api::new().await;
    let answer = api.ask(&Request {
        method: "DELETE",
        path: "/v1/runs",
        headers: &[],
        body: b"",
    });
    assert_eq!((answer.status, answer.header("allow")), (405, "GET,HEAD"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_starts_one_run() {
    let api = Api::new().await;
    api.world.register("guest-steps", "1.0", &[]).await;
    let path = "/v1/workflows/steps/runs";
    let first = api.post(path, r#"{"input":{"count":1},"idempotency_key":"k"}"#);
    let run = first.json()["run"].as_str().unwrap().to_owned();
    assert_eq!(
        (first.status, first.header("location")),
        (201, format!("/v1/runs/{run}").as_str())
    );

    let headers = [
        ("content-type", "application/json"),
        ("idempotency-key", "k"),
    ];
    let again = api.ask(&Request {
        method: "POST",
        path,
        headers: &headers,
        body: br#"{"input":{"count":1}}"#,
    });
    assert_eq!(
        (again.status, again.json()),
        (200, json!({ "run": run, "is_new": false }))
    );

    let other = api.post(path, r#"{"input":{"count":2},"idempotency_key":"k"}"#);
    assert_eq!((other.status, &other.json()["run"]), (409, &json!(run)));
    let both = api.ask(&Request {
        method: "POST",
        path,
        headers: &headers,
        body: br#"{"idempotency_key":"x"}"#,
    });
    assert_eq!(both.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_comes_back_with_every_byte() {
    let api = Api::new().await;
    api.world.register("guest-waiter", "1.0", &[]).await;
    let run = api.start("waiter", r#"{ "event":"go",  "count":1 }"#);
    let text =
        r#"{ "id":  12345678901234567890123, "x": 1.00, "y": 1e400, "z": 9007199254740993 }"#;
    let sent = api.post(
        &format!("/v1/runs/{run}/events/go"),
        &format!(r#"{{"payload":{text}}}"#),
    );
    assert_eq!(sent.status, 202, "{}", sent.text);
    api.get(&format!("/v1/runs/{run}/wait"));
    let document = api.get(&format!("/v1/runs/{run}")).text;
    assert!(
        document.contains(r#""input":{ "event":"go",  "count":1 }"#),
        "{document}"
    );
    let history = api.get(&format!("/v1/runs/{run}/history")).text;
    assert!(history.contains(text), "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_payloads_go_in_and_out_as_base64() {
    let api = Api::new().await;
    api.world.register("guest-waiter", "1.0", &[]).await;
    let run = api.start("waiter", r#"{"event":"go"}"#);
    let sent = api.post(
        &format!("/v1/runs/{run}/events/go"),
        r#"{"payload_base64":"AP8="}"#,
    );
    assert_eq!(sent.status, 202, "{}", sent.text);
    let history = api
        .get(&format!("/v1/runs/{run}/history?from=1&wait_ms=30000"))
        .json();
    assert_eq!(history["entries"][0]["type"], "event-taken", "{history}");
    assert_eq!(history["entries"][0]["value_base64"], "AP8=", "{history}");
    assert!(history["entries"][0].get("value").is_none(), "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_and_its_history_look_like_this() {
    let api = Api::new().await;
    api.world.register("guest-retry", "1.0", &[]).await;
    let run = api.start("retry", r#"{"failures":1,"max_attempts":3,"delay_ms":1}"#);
    api.ended(&run);
    assert_json_snapshot!(
        "a_completed_run",
        redacted_json(&api.get(&format!("/v1/runs/{run}")).json())
    );
    assert_json_snapshot!(
        "its_history",
        redacted_json(&api.get(&format!("/v1/runs/{run}/history")).json())
    );
    assert_json_snapshot!("in_the_list", redacted_json(&api.get("/v1/runs").json()));

    let run = api.start("retry", r#"{"failures":9,"max_attempts":2,"delay_ms":1}"#);
    api.ended(&run);
    assert_json_snapshot!(
        "a_failed_run",
        redacted_json(&api.get(&format!("/v1/runs/{run}")).json())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_is_registered_once_and_its_label_never_moves() {
    let api = Api::new().await;
    let component = std::fs::read(stepwell_tests::component("guest-steps")).unwrap();
    let put = |path: &str, body: &[u8]| {
        api.ask(&Request {
            method: "PUT",
            path,
            headers: &[],
            body,
        })
    };
    let first = put("/v1/versions/1.0?env=A=1&env=B=x%3Dy", &component);
    assert_eq!(first.status, 201, "{}", first.text);
    assert_json_snapshot!("registered", redacted_json(&first.json()));
    let again = put("/v1/versions/1.0?env=A=1&env=B=x%3Dy", &component);
    assert_eq!(
        (again.status, &again.json()["is_new"]),
        (200, &json!(false))
    );
    let other = put("/v1/versions/1.0?env=A=2", &component);
    assert_eq!(
        (other.status, other.json()["type"].as_str()),
        (409, Some("urn:stepwell:problem:version-conflict"))
    );
    let versions = api.get("/v1/workflows/steps/versions").json();
    assert_eq!(
        versions["versions"][0]["environment"],
        json!({ "A": "1", "B": "x=y" })
    );
    assert_eq!(versions["versions"][0]["is_default"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_its_limit_is_refused_with_both_sizes() {
    let api = Api::new().await;
    api.world.register("guest-steps", "1.0", &[]).await;
    let body = format!(r#"{{"input":"{}"}}"#, "x".repeat(3 << 20));
    let answer = api.post("/v1/workflows/steps/runs", &body);
    let problem = answer.json();
    assert_eq!(
        (
            answer.status,
            &problem["found_bytes"],
            &problem["limit_bytes"]
        ),
        (413, &json!(body.len()), &json!(2 << 20))
    );

    let body = format!(r#"{{"input":"{}"}}"#, "x".repeat(1 << 20));
    let problem = api.post("/v1/workflows/steps/runs", &body).json();
    assert_eq!(
        (&problem["status"], &problem["limit_bytes"]),
        (&json!(413), &json!(1 << 20))
    );

    let component = vec![0; Limits::default().component_bytes_max + 1];
    let answer = api.ask(&Request {
        method: "PUT",
        path: "/v1/versions/1.0",
        headers: &[],
        body: &component,
    });
    assert_eq!(
        (answer.status, &answer.json()["found_bytes"]),
        (413, &json!(component.len()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_is_answered_by_news_and_not_by_the_clock() {
    let api = Api::new().await;
    api.world.register("guest-waiter", "1.0", &[]).await;
    let run = api.start("waiter", r#"{"event":"go"}"#);
    api.until(&run, "waiting").await;
    let began = Instant::now();
    let waited = format!("/v1/runs/{run}/history?from=1&wait_ms=60000");
    let news = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                api.send(&Request {
                    method: "GET",
                    path: &waited,
                    headers: &[],
                    body: b"",
                })
            });
            // Nothing has happened yet, so nothing may be answered.
            std::thread::sleep(Duration::from_millis(100));
            assert!(!waiting.is_finished());
            let headers = [("content-type", "application/json")];
            let path = format!("/v1/runs/{run}/events/go");
            api.send(&Request {
                method: "POST",
                path: &path,
                headers: &headers,
                body: br#"{"payload":1}"#,
            });
            waiting.join().unwrap()
        })
    });
    assert_eq!(
        news.json()["entries"][0]["type"],
        "event-taken",
        "{}",
        news.text
    );
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_in_vain_is_answered_with_what_there_is() {
    let api = Api::new().await;
    api.world.register("guest-waiter", "1.0", &[]).await;
    let run = api.start("waiter", r#"{"event":"go"}"#);
    api.until(&run, "waiting").await;
    let began = Instant::now();
    let run = api.get(&format!("/v1/runs/{run}/wait?wait_ms=200")).json();
    assert_eq!(run["status"], "waiting");
    assert!(
        (200..5_000).contains(&began.elapsed().as_millis()),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_answers_those_who_wait() {
    let mut api = Api::new().await;
    api.world.register("guest-waiter", "1.0", &[]).await;
    let run = api.start("waiter", r#"{"event":"go"}"#);
    api.until(&run, "waiting").await;
    let stop = api.stop.take().unwrap();
    let began = Instant::now();
    let waited = format!("/v1/runs/{run}/wait");
    let answer = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                api.send(&Request {
                    method: "GET",
                    path: &waited,
                    headers: &[],
                    body: b"",
                })
            });
            std::thread::sleep(Duration::from_millis(100));
            stop.send(()).unwrap();
            waiting.join().unwrap()
        })
    });
    assert_eq!(
        (answer.status, &answer.json()["status"]),
        (200, &json!("waiting"))
    );
    api.serving.await.unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    drop(api.server);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_delivered_once_per_key_and_answered() {
    let api = Api::new().await;
    api.world.register("guest-waiter", "1.0", &[]).await;
    let run = api.start("waiter", r#"{"event":"go","reply":true,"count":2}"#);
    let path = format!("/v1/runs/{run}/events/go");
    let sent = api.post(&path, r#"{"payload":{"n":1},"delivery_key":"d"}"#);
    let event = sent.json()["event"].as_str().unwrap().to_owned();
    assert_eq!((sent.status, &sent.json()["is_new"]), (202, &json!(true)));
    let again = api.post(&path, r#"{"payload":{"n":1},"delivery_key":"d"}"#);
    assert_eq!(
        (again.status, again.json()),
        (200, json!({ "run": run, "event": event, "is_new": false }))
    );
    let answered = api
        .get(&format!("/v1/runs/{run}/events/{event}?wait_ms=30000"))
        .json();
    assert_eq!(
        answered["reply"],
        json!({ "got": { "n": 1 } }),
        "{answered}"
    );
    let events = api.get(&format!("/v1/runs/{run}/events")).json();
    assert_eq!(events["events"].as_array().unwrap().len(), 1, "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_its_version_cannot_take_is_refused_and_leaves_nothing_behind() {
    let api = Api::new().await;
    api.world.register("approval", "1.0", &[]).await;
    let run = api.start("approval", r#"{"what":"a laptop"}"#);
    let path = format!("/v1/runs/{run}/events/decision");
    for payload in [
        r#"{"by":"ann"}"#,
        r#"{"by":"ann","approved":"yes"}"#,
        "null",
    ] {
        let body = format!(r#"{{"payload":{payload},"delivery_key":"d"}}"#);
        let refused = api.post(&path, &body);
        let problem = refused.json();
        assert_eq!(refused.status, 422, "{payload}: {problem}");
        assert_eq!(problem["type"], json!("urn:stepwell:problem:payload-unfit"));
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("event `decision`"), "{detail}");
    }
    // What the version says nothing about is taken, and the refused ones have used up no key.
    let other = api.post(&format!("/v1/runs/{run}/events/other"), r#"{"payload":1}"#);
    assert_eq!(other.status, 202);
    let sent = api.post(
        &path,
        r#"{"payload":{"by":"ann","approved":true},"delivery_key":"d"}"#,
    );
    assert_eq!((sent.status, &sent.json()["is_new"]), (202, &json!(true)));
    let ended = api.get(&format!("/v1/runs/{run}/wait")).json();
    assert_eq!(ended["status"], json!("completed"), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_mailbox_answers_429_and_says_when_to_try_again() {
    let limits = Limits {
        mailbox_events_max: 2,
        ..Limits::default()
    };
    let api = Api::in_front_of(
        World::with(Config {
            limits,
            ..Config::default()
        })
        .await,
    )
    .await;
    api.world.register("guest-sleeper", "1.0", &[]).await;
    let run = api.start("sleeper", r#"{"ms":600000}"#);
    let path = format!("/v1/runs/{run}/events/go");
    assert_eq!(api.post(&path, "{}").status, 202);
    assert_eq!(api.post(&path, "{}").status, 202);
    let full = api.post(&path, "{}");
    assert_eq!(
        (
            full.status,
            full.header("retry-after"),
            &full.json()["limit"]
        ),
        (429, "5", &json!(2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_are_accepted_once_and_refused_with_the_status() {
    let api = Api::new().await;
    api.world.register("guest-sleeper", "1.0", &[]).await;
    let run = api.start("sleeper", r#"{"ms":600000}"#);
    api.until(&run, "sleeping").await;
    let ask = |verb: &str, body: &str| {
        let answer = api.post(&format!("/v1/runs/{run}/{verb}"), body);
        (answer.status, answer.json())
    };
    let (status, verdict) = ask("pause", "");
    assert_eq!(
        (status, verdict),
        (
            202,
            json!({ "run": run, "verb": "pause", "is_new": true, "status": "paused" })
        )
    );
    assert_eq!(ask("pause", "").0, 200);
    assert_eq!(ask("resume", "").0, 202);
    let (status, problem) = ask("resume", "");
    assert_eq!(
        (status, &problem["run_status"]),
        (409, &json!("sleeping")),
        "{problem}"
    );
    assert_eq!(ask("terminate", r#"{"reason":"enough"}"#).0, 202);
    let (status, verdict) = ask("terminate", "");
    assert_eq!((status, &verdict["status"]), (200, &json!("terminated")));
    let (status, problem) = ask("wake", "");
    assert_eq!(
        (status, &problem["run_status"]),
        (409, &json!("terminated"))
    );
    assert_eq!(
        api.get(&format!("/v1/runs/{run}")).json()["reason"],
        "enough"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_run_answers_like_one_that_does_not_exist() {
    let api = Api::new().await;
    api.world.register("guest-sleeper", "1.0", &[]).await;
    let run = api.start("sleeper", r#"{"ms":600000}"#);
    let ask = |method: &str, path: &str| {
        let headers = [("stepwell-tenant", "other")];
        let answer = api.ask(&Request {
            method,
            path,
            headers: &headers,
            body: b"",
        });
        (answer.status, answer.text)
    };
    let absent = "run_00000000000000000000000000000000";
    for tail in [
        "",
        "/history",
        "/logs",
        "/published",
        "/events",
        "/wait?wait_ms=1",
    ] {
        let (status, text) = ask("GET", &format!("/v1/runs/{run}{tail}"));
        let (absent_status, absent_text) = ask("GET", &format!("/v1/runs/{absent}{tail}"));
        assert_eq!(
            (status, text.replace(&run, absent)),
            (absent_status, absent_text),
            "{tail}"
        );
        assert_eq!(status, 404, "{tail}");
    }
    for verb in [
        "cancel",
        "terminate",
        "pause",
        "resume",
        "wake",
        "events/go",
    ] {
        assert_eq!(
            ask("POST", &format!("/v1/runs/{run}/{verb}")).0,
            404,
            "{verb}"
        );
    }
    assert_eq!(ask("GET", "/v1/runs").1, "{\"runs\":[]}\n");
    assert_eq!(ask("GET", "/v1/versions").1, "{\"versions\":[]}\n");
    assert_eq!(
        api.get(&format!("/v1/runs/{run}")).json()["status"],
        "sleeping"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_gets_nowhere() {
    let api = Api::new().await;
    api.world.register("guest-steps", "1.0", &[]).await;
    let path = "/v1/workflows/steps/runs";
    let body = br#"{"input":{"count":1}}"#;
    let foreign = [
        ("content-type", "application/json"),
        ("origin", "https://evil.example"),
    ];
    assert_eq!(
        api.ask(&Request {
            method: "POST",
            path,
            headers: &foreign,
            body
        })
        .status,
        403
    );
    // What a form may send to any site without being asked.
    let form = [("content-type", "text/plain")];
    assert_eq!(
        api.ask(&Request {
            method: "POST",
            path,
            headers: &form,
            body
        })
        .status,
        415
    );
    let own = [
        ("content-type", "application/json"),
        ("origin", api.url.as_str()),
    ];
    assert_eq!(
        api.ask(&Request {
            method: "POST",
            path,
            headers: &own,
            body
        })
        .status,
        201
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_paged_newest_first_and_filtered() {
    let api = Api::new().await;
    api.world.register("guest-sleeper", "1.0", &[]).await;
    api.world.register("guest-steps", "1.0", &[]).await;
    let sleepers: Vec<_> = (0..3)
        .map(|_| api.start("sleeper", r#"{"ms":600000}"#))
        .collect();
    let done = api.start("steps", r#"{"count":1}"#);
    api.ended(&done);
    let ids = |path: &str| -> (Vec<String>, Option<String>) {
        let list = api.get(path).json();
        let ids = list["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["run"].as_str().unwrap().to_owned())
            .collect();
        (ids, list["before"].as_str().map(str::to_owned))
    };
    let (first, before) = ids("/v1/runs?limit=2");
    assert_eq!(first, [done.clone(), sleepers[2].clone()]);
    let (second, end) = ids(&format!("/v1/runs?limit=2&before={}", before.unwrap()));
    assert_eq!(
        (second, end),
        (vec![sleepers[1].clone(), sleepers[0].clone()], None)
    );
    assert_eq!(ids("/v1/runs?workflow=steps").0, [done.as_str()]);
    assert_eq!(ids("/v1/runs?status=completed,failed").0, [done]);
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_paged_by_count_and_by_bytes() {
    let api = Api::new().await;
    api.world.register("guest-steps", "1.0", &[]).await;
    let run = api.start("steps", r#"{"count":12,"result_bytes":800000}"#);
    api.ended(&run);
    let (mut from, mut pages, mut seen) = (0, 0, Vec::new());
    loop {
        let answer = api.get(&format!("/v1/runs/{run}/history?from={from}&limit=1000"));
        assert!(answer.text.len() < 6 << 20, "{}", answer.text.len());
        let page = answer.json();
        seen.extend(
            page["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["sequence"].as_u64().unwrap()),
        );
        from = page["next"].as_u64().unwrap();
        pages += 1;
        if page["more"] == false {
            break;
        }
    }
    assert!(pages > 1, "{pages}");
    assert_eq!(seen, (0..13).collect::<Vec<_>>());
    let page = api.get(&format!("/v1/runs/{run}/history?limit=2")).json();
    assert_eq!(
        (
            page["entries"].as_array().unwrap().len(),
            &page["next"],
            &page["more"]
        ),
        (2, &json!(2), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_publishes_and_logs_while_it_runs() {
    let api = Api::new().await;
    api.world.register("guest-publisher", "1.0", &[]).await;
    let run = api.start("publisher", r#"{"count":2,"log":true}"#);
    api.ended(&run);
    let published = api.get(&format!("/v1/runs/{run}/published")).json();
    let keys: Vec<_> = published["published"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["finished", "progress"]);
    let logs = api.get(&format!("/v1/runs/{run}/logs?wait_ms=5000")).json();
    let lines = logs["lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["level"] == "error"), "{logs}");
    let after = logs["next"].as_u64().unwrap();
    let rest = api
        .get(&format!("/v1/runs/{run}/logs?after={after}"))
        .json();
    assert_eq!((&rest["lines"], &rest["next"]), (&json!([]), &json!(after)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_may_be_put_off() {
    let api = Api::new().await;
    api.world.register("guest-steps", "1.0", &[]).await;
    for body in [
        r#"{"input":{"count":1},"delay":"1 day"}"#,
        r#"{"input":{"count":1},"start_at":"2999-01-01T00:00:00+01:00"}"#,
    ] {
        let answer = api.post("/v1/workflows/steps/runs", body);
        let run = answer.json()["run"].as_str().unwrap().to_owned();
        let run = api.get(&format!("/v1/runs/{run}")).json();
        assert_eq!(run["status"], "scheduled", "{run}");
        assert!(run["due_at"].is_string(), "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_decides_something_may_be_given_once() {
    let api = Api::new().await;
    for name in ["stepwell-tenant", "idempotency-key"] {
        let headers = [(name, "a"), (name, "b")];
        let path = "/v1/workflows/steps/runs";
        let answer = api.ask(&Request {
            method: "POST",
            path,
            headers: &headers,
            body: b"",
        });
        assert_eq!(
            (answer.status, &answer.json()["detail"]),
            (400, &json!(format!("header {name}: it is given twice")))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_answers_while_the_store_does() {
    let api = Api::new().await;
    let answer = api.get("/v1/health");
    assert_eq!(
        (answer.status, &answer.json()["status"]),
        (200, &json!("ok"))
    );
}
