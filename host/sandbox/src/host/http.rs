//! `wasi:http`: outbound requests, inside steps only, each with the attempt's idempotency key.
//!
//! A request belongs to the step that sent it. When the step ends, what is still under way is cut
//! off, so nothing goes on behind the workflow's back; and whether a response has come cannot be
//! asked outside a step, for the answer would depend on the time.

use ::http::header::{HeaderName, HeaderValue};
use tokio::sync::watch;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::p2::body::HostFutureTrailers;
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttp, WasiHttpCtxView, WasiHttpHooks, default_hooks,
};

use crate::instance::Instance;
use crate::trap::Halt;

/// The interfaces whose functions are guarded, as `wasmtime-wasi-http` names them.
const TYPES: &str = "wasi:http/types@0.2.12";
const OUTGOING_HANDLER: &str = "wasi:http/outgoing-handler@0.2.12";

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What an attempt may send, and how it is cut off.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    /// The key of the attempt that runs.
    key: Option<String>,
    /// Dropped when the attempt ends; made with its first request.
    attempt: Option<watch::Sender<()>>,
}

impl Outbound {
    /// An attempt with this key begins.
    pub(crate) fn open(&mut self, key: String) {
        self.key = Some(key);
    }

    /// The attempt is over, and so are its requests.
    pub(crate) fn close(&mut self) {
        *self = Self::default();
    }
}

type Sent = Result<(::http::Response<WasiBody>, Background), Error>;
type Background = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Outbound {
    fn send_request(
        &mut self,
        mut request: ::http::Request<WasiBody>,
        options: Option<RequestOptions>,
        body: Background,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        if let Some(key) = &self.key
            && let Ok(value) = HeaderValue::from_str(key)
        {
            request
                .headers_mut()
                .entry(IDEMPOTENCY_KEY)
                .or_insert(value);
        }
        let attempt = self.attempt.get_or_insert_with(|| watch::Sender::new(()));
        let (mut over, mut over_later) = (attempt.subscribe(), attempt.subscribe());
        let sending = default_hooks().send_request(request, options, body);
        Box::new(async move {
            let (response, background) = tokio::select! {
                sent = Box::into_pin(sending) => sent?,
                _ = over.changed() => return Err(Error::ConnectionTerminated),
            };
            let background: Background = Box::new(async move {
                tokio::select! {
                    ended = Box::into_pin(background) => ended,
                    // Dropping the connection ends the body that is read from it.
                    _ = over_later.changed() => Err(Error::ConnectionTerminated),
                }
            });
            Ok((response, background))
        })
    }
}

pub(super) fn link(linker: &mut Linker<Instance>) -> wasmtime::Result<()> {
    let options = wasmtime_wasi_http::p2::bindings::LinkOptions::default();
    types::add_to_linker::<_, WasiHttp>(linker, &(&options).into(), view)?;
    outgoing_handler::add_to_linker::<_, WasiHttp>(linker, view)?;

    // The three functions that reach the real world, or ask about it. Bodies are streams, and
    // those are guarded where they are read and written.
    linker.allow_shadowing(true);
    linker.instance(OUTGOING_HANDLER)?.func_wrap(
        "handle",
        |mut store: StoreContextMut<'_, Instance>,
         (request, options): (
            Resource<HostOutgoingRequest>,
            Option<Resource<RequestOptions>>,
        )| {
            let instance = store.data_mut();
            instance.check_may_send("sends an HTTP request")?;
            let mut view = view(instance);
            let sent = match outgoing_handler::Host::handle(&mut view, request, options) {
                Ok(response) => Ok(response),
                Err(error) => Err(types::Host::convert_error_code(&mut view, error)?),
            };
            Ok((sent,))
        },
    )?;
    linker.instance(TYPES)?.func_wrap(
        "[method]future-incoming-response.get",
        |mut store: StoreContextMut<'_, Instance>,
         (future,): (Resource<HostFutureIncomingResponse>,)| {
            let instance = store.data_mut();
            instance.check_may_send("looks for the response to an HTTP request")?;
            Ok((types::HostFutureIncomingResponse::get(
                &mut view(instance),
                future,
            )?,))
        },
    )?;
    linker.instance(TYPES)?.func_wrap(
        "[method]future-trailers.get",
        |mut store: StoreContextMut<'_, Instance>, (future,): (Resource<HostFutureTrailers>,)| {
            let instance = store.data_mut();
            instance.check_may_send("looks for the trailers of an HTTP response")?;
            Ok((types::HostFutureTrailers::get(&mut view(instance), future)?,))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

fn view(instance: &mut Instance) -> WasiHttpCtxView<'_> {
    WasiHttpCtxView {
        hooks: &mut instance.outbound,
        table: &mut instance.table,
        ctx: &mut instance.http,
    }
}

impl Instance {
    fn check_may_send(&self, what: &str) -> wasmtime::Result<()> {
        if self.in_step() {
            return Ok(());
        }
        Err(Halt::forbidden(format!(
            "the guest {what}, and outbound HTTP is only allowed inside a step: \
             there its outcome is recorded, and not repeated on replay"
        )))
    }
}
