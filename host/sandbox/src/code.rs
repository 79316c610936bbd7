//! Compiled code, which is executed as it is: neither the processor nor wasmtime checks it. A
//! [`Code`] can only be had from those who vouch for it.

use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes that wasmtime's compiler gave, unchanged since.
#[derive(Debug)]
pub(crate) struct Code(Vec<u8>);

impl Code {
    /// From the compiler of this build, in this process or in a worker of it.
    pub(crate) fn from_compiler(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// From the cache, once it has verified that it wrote them itself.
    pub(crate) fn from_cache(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Ready to be linked.
    ///
    /// # Errors
    /// When the code is for another build of the engine, or needs more than its pools offer.
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` must be given bytes that wasmtime's compiler gave, unchanged. Both
        // ways to make a `Code` vouch for that: `from_compiler` is called by `compiler` with what
        // `precompile_component` answered, directly or through the pipe of a worker that the host
        // started itself; `from_cache` by `cache` with bytes whose HMAC, under a key that the host
        // alone can read, was verified over this same memory.
        #[expect(unsafe_code, reason = "the one place that loads compiled code")]
        unsafe {
            Component::deserialize(engine, &self.0)
        }
    }
}
