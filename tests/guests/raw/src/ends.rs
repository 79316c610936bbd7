//! Ends that no workflow should come to, and limits that are met.

use std::mem::ManuallyDrop;

use crate::Workflow;
use crate::bindings::stepwell::workflow::log;
use crate::steps::{nap, step};

pub(crate) const WORKFLOWS: &[Workflow] = &[
    ("spin", |_| spin()),
    ("spin-in-step", |_| step("spinning", || spin())),
    ("work-between-naps", work_between_naps),
    ("grow", |_| grow()),
    ("grow-too-far-at-once", |_| {
        core::arch::wasm32::memory_grow(0, 65_000).to_string()
    }),
    ("recurse", |depth| recurse(depth.len() as u64).to_string()),
    ("panic", |_| outer_function()),
    ("panic-in-step", |_| step("panicking", || outer_function())),
    ("unreachable", |_| core::arch::wasm32::unreachable()),
    ("out-of-bounds", |_| out_of_bounds()),
    ("exit", |status| {
        std::process::exit(status.parse().unwrap_or_default())
    }),
    ("too-much-at-once", too_much_at_once),
];

#[inline(never)]
pub(crate) fn spin() -> ! {
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_add(1));
    }
}

/// Works for so many milliseconds of the CPU, about, before each of three naps.
fn work_between_naps(rounds: &str) -> String {
    let rounds: u64 = rounds.parse().unwrap_or_default();
    for _ in 0..3 {
        let mut number = 0_u64;
        for _ in 0..rounds {
            number = std::hint::black_box(number.wrapping_add(1));
        }
        nap();
    }
    "done".to_owned()
}

fn grow() -> String {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    loop {
        kept.push(std::hint::black_box(vec![1; 1024 * 1024]));
    }
}

#[inline(never)]
#[allow(unconditional_recursion, reason = "the point of it")]
fn recurse(depth: u64) -> u64 {
    std::hint::black_box(recurse(std::hint::black_box(depth + 1)) + 1)
}

#[inline(never)]
fn outer_function() -> String {
    let empty: Vec<u32> = std::hint::black_box(Vec::new());
    empty[std::hint::black_box(7)].to_string()
}

#[allow(unsafe_code, reason = "the point of it")]
fn out_of_bounds() -> String {
    let far = std::hint::black_box(0xffff_fff0_u32 as usize) as *const u32;
    // SAFETY: none; the sandbox must catch it.
    unsafe { std::ptr::read_volatile(far) }.to_string()
}

/// One string handed over many times: a megabyte in the guest, and a thousand in the host.
#[allow(unsafe_code, reason = "an honest guest would own every string")]
fn too_much_at_once(_: &str) -> String {
    let text = "x".repeat(1024 * 1024);
    let alias = |_| {
        // SAFETY: none of them is ever dropped or written to.
        let text =
            unsafe { String::from_raw_parts(text.as_ptr().cast_mut(), text.len(), text.len()) };
        (text, String::new())
    };
    let fields = ManuallyDrop::new((0..1_000).map(alias).collect::<Vec<_>>());
    log::log(log::Level::Info, "", &fields);
    "survived".to_owned()
}
