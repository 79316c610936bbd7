//! `wasi:io/streams`: stdout and stderr go to the log, stdin is at its end, and every other stream
//! is a body of HTTP, which only a step may touch: a body kept from a step would bring the real
//! world into the workflow.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::io::streams;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, StreamError, StreamResult, subscribe,
};

use crate::console::Stream;
use crate::instance::{Constant, Instance};
use crate::trap::Halt;

/// What stdout and stderr take in one call, in bytes.
const WRITE_BYTES_MAX: u64 = 64 * 1024;

impl Instance {
    fn console_stream(&self, rep: u32) -> Option<Stream> {
        match self.constant.get(&rep) {
            Some(Constant::Output(stream)) => Some(*stream),
            Some(Constant::Input | Constant::Ready) | None => None,
        }
    }

    fn is_stdin(&self, rep: u32) -> bool {
        self.constant.get(&rep) == Some(&Constant::Input)
    }

    fn check_may_touch_bodies(&self) -> StreamResult<()> {
        if self.in_step() {
            return Ok(());
        }
        Err(StreamError::Trap(Halt::forbidden(
            "the guest reads or writes an HTTP body outside the step that opened it; \
             read the whole body inside the step and return what is needed of it",
        )))
    }
}

impl streams::Host for Instance {
    fn convert_stream_error(
        &mut self,
        error: StreamError,
    ) -> wasmtime::Result<streams::StreamError> {
        streams::Host::convert_stream_error(&mut self.table, error)
    }
}

impl streams::HostInputStream for Instance {
    fn read(&mut self, stream: Resource<DynInputStream>, length: u64) -> StreamResult<Vec<u8>> {
        if self.is_stdin(stream.rep()) {
            return Err(StreamError::Closed);
        }
        self.check_may_touch_bodies()?;
        streams::HostInputStream::read(&mut self.table, stream, length)
    }

    async fn blocking_read(
        &mut self,
        stream: Resource<DynInputStream>,
        length: u64,
    ) -> StreamResult<Vec<u8>> {
        if self.is_stdin(stream.rep()) {
            return Err(StreamError::Closed);
        }
        self.check_may_touch_bodies()?;
        streams::HostInputStream::blocking_read(&mut self.table, stream, length).await
    }

    fn skip(&mut self, stream: Resource<DynInputStream>, length: u64) -> StreamResult<u64> {
        if self.is_stdin(stream.rep()) {
            return Err(StreamError::Closed);
        }
        self.check_may_touch_bodies()?;
        streams::HostInputStream::skip(&mut self.table, stream, length)
    }

    async fn blocking_skip(
        &mut self,
        stream: Resource<DynInputStream>,
        length: u64,
    ) -> StreamResult<u64> {
        if self.is_stdin(stream.rep()) {
            return Err(StreamError::Closed);
        }
        self.check_may_touch_bodies()?;
        streams::HostInputStream::blocking_skip(&mut self.table, stream, length).await
    }

    fn subscribe(
        &mut self,
        stream: Resource<DynInputStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        let constant = self.is_stdin(stream.rep());
        let pollable = subscribe(&mut self.table, stream)?;
        if constant {
            self.constant.insert(pollable.rep(), Constant::Ready);
        }
        Ok(pollable)
    }

    async fn drop(&mut self, stream: Resource<DynInputStream>) -> wasmtime::Result<()> {
        self.constant.remove(&stream.rep());
        streams::HostInputStream::drop(&mut self.table, stream).await
    }
}

impl streams::HostOutputStream for Instance {
    fn check_write(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<u64> {
        if self.console_stream(stream.rep()).is_some() {
            return Ok(WRITE_BYTES_MAX);
        }
        self.check_may_touch_bodies()?;
        streams::HostOutputStream::check_write(&mut self.table, stream)
    }

    fn write(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        if let Some(console) = self.console_stream(stream.rep()) {
            Instance::write(self, console, &bytes);
            return Ok(());
        }
        self.check_may_touch_bodies()?;
        streams::HostOutputStream::write(&mut self.table, stream, bytes)
    }

    async fn blocking_write_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        bytes: Vec<u8>,
    ) -> StreamResult<()> {
        if let Some(console) = self.console_stream(stream.rep()) {
            Instance::write(self, console, &bytes);
            return Ok(());
        }
        self.check_may_touch_bodies()?;
        streams::HostOutputStream::blocking_write_and_flush(&mut self.table, stream, bytes).await
    }

    fn flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        if self.console_stream(stream.rep()).is_some() {
            return Ok(());
        }
        self.check_may_touch_bodies()?;
        streams::HostOutputStream::flush(&mut self.table, stream)
    }

    async fn blocking_flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        if self.console_stream(stream.rep()).is_some() {
            return Ok(());
        }
        self.check_may_touch_bodies()?;
        streams::HostOutputStream::blocking_flush(&mut self.table, stream).await
    }

    fn subscribe(
        &mut self,
        stream: Resource<DynOutputStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        let constant = self.console_stream(stream.rep()).is_some();
        let pollable = subscribe(&mut self.table, stream)?;
        if constant {
            self.constant.insert(pollable.rep(), Constant::Ready);
        }
        Ok(pollable)
    }

    fn write_zeroes(&mut self, stream: Resource<DynOutputStream>, length: u64) -> StreamResult<()> {
        if let Some(console) = self.console_stream(stream.rep()) {
            return self.write_zeroes_to_console(console, length);
        }
        self.check_may_touch_bodies()?;
        // The host makes the zeroes before anybody looks at how many they are.
        let permitted = self.table.get_mut(&stream)?.check_write()?;
        if length > permitted as u64 {
            return Err(StreamError::Trap(Halt::misuse(format!(
                "`write-zeroes` was called with {length} bytes, and check-write permits {permitted}"
            ))));
        }
        streams::HostOutputStream::write_zeroes(&mut self.table, stream, length)
    }

    async fn blocking_write_zeroes_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        length: u64,
    ) -> StreamResult<()> {
        if let Some(console) = self.console_stream(stream.rep()) {
            return self.write_zeroes_to_console(console, length);
        }
        self.check_may_touch_bodies()?;
        streams::HostOutputStream::blocking_write_zeroes_and_flush(&mut self.table, stream, length)
            .await
    }

    fn splice(
        &mut self,
        to: Resource<DynOutputStream>,
        from: Resource<DynInputStream>,
        length: u64,
    ) -> StreamResult<u64> {
        if let Some(console) = self.console_stream(to.rep()) {
            let bytes = streams::HostInputStream::read(self, from, length.min(WRITE_BYTES_MAX))?;
            Instance::write(self, console, &bytes);
            return Ok(bytes.len() as u64);
        }
        self.check_may_touch_bodies()?;
        streams::HostOutputStream::splice(&mut self.table, to, from, length)
    }

    async fn blocking_splice(
        &mut self,
        to: Resource<DynOutputStream>,
        from: Resource<DynInputStream>,
        length: u64,
    ) -> StreamResult<u64> {
        if let Some(console) = self.console_stream(to.rep()) {
            let bytes =
                streams::HostInputStream::blocking_read(self, from, length.min(WRITE_BYTES_MAX))
                    .await?;
            Instance::write(self, console, &bytes);
            return Ok(bytes.len() as u64);
        }
        self.check_may_touch_bodies()?;
        streams::HostOutputStream::blocking_splice(&mut self.table, to, from, length).await
    }

    async fn drop(&mut self, stream: Resource<DynOutputStream>) -> wasmtime::Result<()> {
        self.constant.remove(&stream.rep());
        streams::HostOutputStream::drop(&mut self.table, stream).await
    }
}

impl Instance {
    fn write_zeroes_to_console(&mut self, console: Stream, length: u64) -> StreamResult<()> {
        let length = usize::try_from(length.min(WRITE_BYTES_MAX)).unwrap_or_default();
        Instance::write(self, console, &vec![0; length]);
        Ok(())
    }
}
