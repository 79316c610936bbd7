//! Traps, in every way there is, outside a step, inside one or in a task.

use std::hint::black_box;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell_sdk::{Ctx, Error, Failure, Retry, component, http, task, workflow};

/// Which trap, and where.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Plan {
    mode: Mode,
    /// Where; outside a step if left out.
    #[serde(default)]
    place: Place,
    /// For `http`.
    url: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// Does nothing wrong.
    None,
    Panic,
    /// Reads outside its memory.
    Oob,
    /// Recurses without end, on the stack that the engine keeps.
    Stack,
    /// Recurses without end with a large frame, on the stack that Rust keeps in linear memory.
    ShadowStack,
    /// Takes memory until there is none.
    Memory,
    /// Computes forever.
    Cpu,
    /// Calls `exit`; WASI tells the host only that it was no success.
    Exit,
    /// Sleeps on the system's clock, which is forbidden outside a step.
    Sleep,
    /// Asks for `url`, which is forbidden outside a step.
    Http,
    /// Asks for an operation; inside a step that breaks the contract.
    Operation,
    /// Awaits a future that no operation can ever wake.
    Foreign,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Place {
    #[default]
    Workflow,
    Step,
    Task,
}

/// Runs a step `before`, then traps as it is told, then runs a step `after`.
#[workflow]
async fn trap(ctx: Ctx, plan: Plan) -> Result<String, Error> {
    ctx.step("before", || Ok(())).await?;
    let twice = Retry::constant().jitter(0.0).delay("1ms").max_attempts(2);
    match plan.place {
        Place::Workflow => match plan.mode {
            Mode::Foreign => std::future::pending().await,
            Mode::Operation => ctx.publish("operation", &true)?,
            _ => misbehave(&plan)?,
        },
        Place::Step => {
            let body = || match plan.mode {
                Mode::Operation => ctx
                    .publish("operation", &true)
                    .map_err(|error| Failure::new("refused", error.to_string())),
                _ => misbehave(&plan),
            };
            ctx.step("trapping", body).retry(twice).await?;
        }
        Place::Task => ctx.call_task(trapping, plan.clone()).retry(twice).await?,
    }
    ctx.step("after", || Ok(())).await?;
    Ok("survived".to_owned())
}

/// Traps as it is told.
#[task]
fn trapping(plan: Plan) -> Result<(), Failure> {
    misbehave(&plan)
}

#[allow(unsafe_code, reason = "only unsafe code can leave its memory")]
fn misbehave(plan: &Plan) -> Result<(), Failure> {
    match plan.mode {
        Mode::None | Mode::Operation | Mode::Foreign => {}
        Mode::Panic => panic!("told to panic"),
        Mode::Oob => {
            let outside = black_box(usize::MAX - 64) as *const u8;
            // SAFETY: there is none; the sandbox has to stop it.
            black_box(unsafe { outside.read_volatile() });
        }
        Mode::Stack => {
            black_box(recurse(black_box(1)));
        }
        Mode::ShadowStack => {
            black_box(recurse_with_frame(black_box(1)));
        }
        Mode::Memory => {
            let mut held = Vec::new();
            loop {
                held.push(black_box(vec![1_u8; 1024 * 1024]));
            }
        }
        Mode::Cpu => loop {
            black_box(());
        },
        Mode::Exit => std::process::exit(3),
        Mode::Sleep => std::thread::sleep(Duration::from_millis(50)),
        Mode::Http => {
            let url = plan.url.as_deref().unwrap_or("http://127.0.0.1:9/");
            http::get(url).send()?;
        }
    }
    Ok(())
}

/// Neither a loop nor a frame in linear memory can be made of this.
#[inline(never)]
#[allow(unconditional_recursion, reason = "that is the point")]
fn recurse(depth: u64) -> u64 {
    recurse(depth.wrapping_mul(3)).rotate_left(7) ^ depth
}

#[inline(never)]
#[allow(unconditional_recursion, reason = "that is the point")]
fn recurse_with_frame(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    recurse_with_frame(depth.wrapping_mul(3)) ^ frame[31]
}

component! { workflows: [trap], tasks: [trapping] }
