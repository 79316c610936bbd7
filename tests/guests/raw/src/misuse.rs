//! The contract, broken in every way that the host answers with a trap.

use crate::Workflow;
use crate::bindings::stepwell::workflow::durable;
use crate::bindings::stepwell::workflow::log;
use crate::bindings::stepwell::workflow::types::Payload;
use crate::steps::{DEFAULT, step};

pub(crate) const WORKFLOWS: &[Workflow] = &[
    ("step-in-step", |_| {
        step("outer", || step("inner", String::new))
    }),
    ("sleep-in-step", |_| {
        in_step(|| drop(durable::sleep("nap", 1)))
    }),
    ("sleep-until-in-step", |_| {
        in_step(|| drop(durable::sleep_until("nap", 1)))
    }),
    ("wait-in-step", |_| {
        in_step(|| drop(durable::wait_for_event("event", None)))
    }),
    ("task-in-step", |_| {
        in_step(|| drop(durable::call_task("echo", &null(), DEFAULT)))
    }),
    ("select-in-step", |_| {
        in_step(|| drop(durable::select(&[0])))
    }),
    ("withdraw-in-step", |_| in_step(|| durable::withdraw(0))),
    ("retry-in-step", |_| {
        in_step(|| drop(durable::retry_step(0, DEFAULT)))
    }),
    ("reply-in-step", |_| {
        in_step(|| drop(durable::reply("evt_1", Ok(&null()))))
    }),
    ("publish-in-step", |_| {
        in_step(|| drop(durable::publish("key", &null())))
    }),
    ("finish-without-a-step", |_| {
        format!("{:?}", durable::finish_step(Ok(&null())))
    }),
    ("retry-unknown", |_| {
        format!("{:?}", durable::retry_step(99, DEFAULT))
    }),
    ("select-nothing", |_| format!("{:?}", durable::select(&[]))),
    ("select-too-many", |_| {
        format!("{:?}", durable::select(&vec![0; 100_000]))
    }),
    ("ask-in-step", |_| {
        step("asking", || {
            log::log(log::Level::Info, "from the step", &[]);
            format!("{} {}", durable::info().tenant, durable::now())
        })
    }),
];

fn null() -> Payload {
    Payload::Json("null".to_owned())
}

fn in_step(call: impl FnOnce()) -> String {
    step("step", || {
        call();
        "survived".to_owned()
    })
}

pub(crate) fn now() -> String {
    durable::now().to_string()
}
