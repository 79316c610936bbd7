//! `serve`: wires store, sandbox, engine and server together, and takes them apart in good order.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use stepwell_engine::clock::SystemClock;
use stepwell_engine::{Config, Engine};
use stepwell_sandbox::Sandbox;
use stepwell_server::Server;
use stepwell_store::{MemoryStore, SqliteStore, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::args::{Serve, StoreKind};
use crate::exit::Exit;
use crate::render::{Paint, Style};
use crate::terminal::Terminal;

/// Without RUST_LOG: our own news, and only what is wrong elsewhere.
const LOG_DEFAULT: &str = "warn,stepwell_server=info,stepwell_engine=info,stepwell_store=info,stepwell_sandbox=info,stepwell=info";

pub(crate) fn serve(terminal: &Terminal, serve: &Serve) -> anyhow::Result<Exit> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG_DEFAULT));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal.err_style() == Style::COLOUR)
        .with_target(false)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads can be had")?;
    let outcome = runtime.block_on(run(terminal, serve));
    // A compile that nobody waits for any more must not hold up the exit.
    runtime.shutdown_background();
    outcome.map(|()| Exit::Ok)
}

async fn run(terminal: &Terminal, serve: &Serve) -> anyhow::Result<()> {
    // The port comes first: if it is taken, the data folder stays as it is.
    let listener = TcpListener::bind(&serve.listen).await.map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::AddrInUse => {
                "another process listens there; stop it, or choose another address with --listen"
            }
            ErrorKind::InvalidInput => "an address is written as 127.0.0.1:7117",
            _ => "choose another address with --listen",
        };
        anyhow::anyhow!("cannot listen on {}: {error}\n{advice}", serve.listen)
    })?;
    let address = listener
        .local_addr()
        .context("the listener has no address")?;
    // From here on a signal is ours to handle, also while the store is being opened.
    let mut stop = Stop::listen().context("signals cannot be handled")?;

    let store = open(terminal, serve)?;
    let cache_folder = (serve.store == StoreKind::Sqlite).then(|| serve.data.join("compiled"));
    let compile_worker = stepwell_sandbox::Worker::this_program(crate::COMPILE_WORKER).context(
        "this program cannot be found, which compiles components in a process of its own",
    )?;
    let sandbox = Sandbox::new(stepwell_sandbox::Config {
        cache_folder,
        compile_worker: Some(compile_worker),
        ..stepwell_sandbox::Config::default()
    })?;
    let clock = Arc::new(SystemClock);
    let engine = Engine::launch(
        store,
        Arc::new(sandbox),
        Arc::clone(&clock) as _,
        Config::default(),
    )
    .await
    .context("the engine did not start")?;
    let server = Server::new(engine.clone(), clock);
    if !address.ip().is_loopback() {
        tracing::warn!(
            "{address} can be reached from other machines, and whoever reaches it may do anything"
        );
    }
    terminal.print_line(&ready(terminal, serve, address))?;

    let (stop_serving, serving_stopped) = tokio::sync::oneshot::channel::<()>();
    let orderly = async {
        // The sender only goes away together with this future.
        let stop = async { serving_stopped.await.unwrap_or_default() };
        stepwell_server::serve(listener, server, stop).await;
        // No request can start a run any more; now those that are driven find their end.
        engine.shutdown().await;
    };
    tokio::pin!(orderly);
    tokio::select! {
        () = &mut orderly => anyhow::bail!("the server stopped without being asked"),
        () = stop.asked() => tracing::info!("stopping; a second signal stops at once"),
    }
    let _ = stop_serving.send(());
    tokio::select! {
        () = orderly => tracing::info!("stopped; every run goes on from its journal at the next start"),
        () = stop.asked() => tracing::warn!("stopped at once; every run goes on from its journal at the next start"),
    }
    Ok(())
}

fn open(terminal: &Terminal, serve: &Serve) -> anyhow::Result<Arc<dyn Store>> {
    match serve.store {
        StoreKind::Sqlite => Ok(Arc::new(SqliteStore::open(&serve.data)?)),
        StoreKind::Memory => {
            let warning =
                "--store memory: everything is lost when this process ends. Not for real work.";
            terminal.tell(&format!(
                "{}\n",
                terminal.err_style().paint(Paint::Bad, warning)
            ));
            Ok(Arc::new(MemoryStore::new()))
        }
    }
}

/// The one line that says the server is ready; scripts read the address from it.
fn ready(terminal: &Terminal, serve: &Serve, address: SocketAddr) -> String {
    let style = terminal.style();
    let url = style.paint(Paint::Strong, &format!("http://{address}"));
    let place = match serve.store {
        StoreKind::Sqlite => format!("data in {}", serve.data.display()),
        StoreKind::Memory => "data in memory".to_owned(),
    };
    format!(
        "Stepwell {} is ready at {url}  {}",
        env!("CARGO_PKG_VERSION"),
        style.paint(Paint::Dim, &place)
    )
}

/// SIGTERM and SIGINT.
#[derive(Debug)]
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Ready with the next of them.
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
