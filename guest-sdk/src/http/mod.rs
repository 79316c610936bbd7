//! An HTTP client for step bodies and tasks: blocking, small, and bounded.
//!
//! HTTP is open only inside a step or a task, and only to the hosts that the version may reach;
//! anywhere else a request traps. The host adds an `Idempotency-Key` that is the same for every
//! attempt, unless the request has one.
//!
//! Every error is a [`Failure`](crate::Failure), so that a step body hands it on with `?`:
//!
//! | kind | what happened | retried |
//! |---|---|---|
//! | `http-request` | the URL, a header or the body is not one that can be sent | no |
//! | `http-denied` | the version may not reach this address | no |
//! | `http-connection` | no connection, or it broke | yes |
//! | `http-timeout` | no whole answer in time | yes |
//! | `http-response` | the body is too large (not retried), or is not what was expected | yes |
//! | `http-status` | [`Response::error_for_status`] met 408, 425, 429 or 5xx | yes |
//! | `http-status` | it met another 4xx | no |
//!
//! ```
//! use stepwell_sdk::{Failure, http};
//!
//! fn reserve(item: &str) -> Result<String, Failure> {
//!     http::post("https://stock.example/reservations")
//!         .json(&item.to_owned())
//!         .timeout("10 seconds")
//!         .send()?
//!         .error_for_status()?
//!         .json()
//! }
//! ```

mod request;
mod response;
#[cfg(target_arch = "wasm32")]
mod transport;
mod url;

pub use request::Request;
pub use response::Response;

/// A `GET` request.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// A `POST` request.
pub fn post(url: impl Into<String>) -> Request {
    Request::new("POST", url)
}

/// A `PUT` request.
pub fn put(url: impl Into<String>) -> Request {
    Request::new("PUT", url)
}

/// A `PATCH` request.
pub fn patch(url: impl Into<String>) -> Request {
    Request::new("PATCH", url)
}

/// A `DELETE` request.
pub fn delete(url: impl Into<String>) -> Request {
    Request::new("DELETE", url)
}
