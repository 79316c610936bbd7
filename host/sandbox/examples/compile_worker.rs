//! The process that the tests compile in.

fn main() -> std::process::ExitCode {
    stepwell_sandbox::compile_worker()
}
