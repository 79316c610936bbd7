//! The sandbox as the engine sees it: components by digest, each compiled once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use stepwell_core::id::ComponentDigest;
use stepwell_core::limits::Limits;
use tokio::sync::{OnceCell, Semaphore};
use wasmtime::component::Linker;

use crate::bindings::WorkflowPre;
use crate::cache::{self, Cache};
use crate::check::{self, Checked, Rejected};
use crate::code::Code;
use crate::compiler::{self, Failed, Worker};
use crate::component::{Compiled, Runtime, Source};
use crate::guest::Component;
use crate::instance::Instance;
use crate::ticker::Ticker;
use crate::{engine, host, imports, trap};

/// How a sandbox is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// A private folder (0700) for compiled code; made if it is not there. Without one, every
    /// start of the host compiles what it needs, and components' bytes stay in memory.
    pub cache_folder: Option<PathBuf>,
    /// Component instances that may be alive at once. Each takes several of the kernel's 65,530
    /// mappings for a process (vm.max_map_count), so about 10,000 is the end.
    pub instances_max: u32,
    /// Compiled components kept in memory; the least recently used goes first.
    pub components_max: usize,
    /// Compiles that run at once, each on one core.
    pub compiles_max: usize,
    /// Compiles in a process of its own, which is ended when it takes too long or too much.
    /// Without one, a component that was made for it keeps a core busy for hours: only for
    /// components that are trusted.
    pub compile_worker: Option<Worker>,
    /// Elements of one table at most, whatever a version's limit says; the pools are laid out for it.
    pub table_elements_max: usize,
    /// How long a guest runs before others have their turn.
    pub tick: Duration,
}

/// Backtraces that are drawn up at once: a nicety, which must not take the host's threads.
const BACKTRACES_MAX: usize = 2;

impl Default for Config {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cache_folder: None,
            instances_max: 4_000,
            components_max: 256,
            // Half of the cores stay with the guests.
            compiles_max: (cores / 2).max(1),
            compile_worker: None,
            table_elements_max: 20_000,
            tick: Duration::from_millis(10),
        }
    }
}

/// The sandbox could not do its work. The host's fault, never a guest's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder for compiled code cannot be used.
    #[error(transparent)]
    Cache(#[from] cache::Error),
    /// The engine did not start.
    #[error(
        "cannot set up the sandbox for {instances_max} instances: {reason}; ask for fewer instances"
    )]
    Start {
        /// Instances asked for.
        instances_max: u32,
        /// What wasmtime or the system says.
        reason: String,
    },
    /// The bytes are not those of the component.
    #[error(
        "the stored bytes of component {expected} have digest {found}; the store is damaged, register it again"
    )]
    WrongBytes {
        /// The component asked for.
        expected: ComponentDigest,
        /// What the bytes hash to.
        found: ComponentDigest,
    },
    /// A component that was registered no longer compiles: another build of the host took it.
    #[error(
        "component {digest} was registered, but this build of the host does not take it: {reason}"
    )]
    Unusable {
        /// The component.
        digest: ComponentDigest,
        /// What is wrong with it now.
        #[source]
        reason: Rejected,
    },
    /// The compiler could not be run.
    #[error("a component could not be compiled: {0}")]
    Compiler(String),
    /// No instance could be made.
    #[error("the sandbox cannot make an instance now: {0}; try again")]
    Busy(String),
}

/// Runs components. Cheap to clone; all clones are one sandbox.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    linker: Linker<Instance>,
    cache: Option<Arc<Cache>>,
    compiles: Arc<Semaphore>,
    compile_worker: Option<Worker>,
    components_max: usize,
    components: Mutex<Components>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox")
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// What is kept in memory.
#[derive(Default)]
struct Components {
    by_digest: HashMap<ComponentDigest, Slot>,
    /// Grows with every use.
    uses: u64,
}

struct Slot {
    /// Filled by whoever comes first; the others wait for it.
    component: Arc<OnceCell<Arc<Compiled>>>,
    last_use: u64,
}

impl Sandbox {
    /// Starts a sandbox.
    ///
    /// # Errors
    /// [`Error::Cache`] if the folder cannot be used, [`Error::Start`] if the system cannot hold
    /// so many instances.
    pub fn new(config: Config) -> Result<Self, Error> {
        let failed = |reason: String| Error::Start {
            instances_max: config.instances_max,
            reason,
        };
        let engine = engine::new(config.instances_max, config.table_elements_max)
            .map_err(|error| failed(trap::chain(&error)))?;
        let mut linker = Linker::new(&engine);
        host::link(&mut linker).map_err(|error| failed(trap::chain(&error)))?;
        let cache = match &config.cache_folder {
            Some(folder) => Some(Arc::new(Cache::open(folder, &engine)?)),
            None => None,
        };
        let ticker =
            Ticker::start(engine.weak(), config.tick).map_err(|error| failed(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            runtime: Runtime {
                engine,
                ticker: Arc::new(ticker),
                tick: config.tick,
                backtraces: Arc::new(Semaphore::new(BACKTRACES_MAX)),
            },
            linker,
            cache,
            compiles: Arc::new(Semaphore::new(config.compiles_max.max(1))),
            compile_worker: config.compile_worker,
            components_max: config.components_max.max(1),
            components: Mutex::default(),
        })))
    }

    /// Everything that registration needs to know about a component. On success it is compiled,
    /// and kept in memory and in the cache.
    ///
    /// # Errors
    /// [`CheckError::Rejected`](check::Error::Rejected) if something is wrong with it,
    /// [`CheckError::Host`](check::Error::Host) if the host could not tell.
    pub async fn check(&self, bytes: Arc<[u8]>, limits: &Limits) -> Result<Checked, check::Error> {
        if bytes.len() > limits.component_bytes_max {
            let (size, limit) = (bytes.len(), limits.component_bytes_max);
            return Err(Rejected::TooLarge { size, limit }.into());
        }
        let looked_at = Arc::clone(&bytes);
        let digest = blocking(move || imports::check(&looked_at).map(|()| digest_of(&looked_at)))
            .await
            .ok_or(Rejected::CompilerFailed)??;
        let component = self.compiled(digest, bytes).await?;
        let manifest = check::describe(&component, limits).await?;
        Ok(Checked {
            digest,
            manifest,
            component,
        })
    }

    /// A component that is in memory.
    pub fn cached(&self, digest: ComponentDigest) -> Option<Arc<dyn Component>> {
        let component = self.components().get(digest)?;
        Some(component)
    }

    /// A component, from memory or from the cache, or compiled from its bytes. Calls at the same
    /// time for the same digest compile it once.
    ///
    /// # Errors
    /// [`Error::WrongBytes`] or [`Error::Unusable`] if it cannot be run.
    pub async fn load(
        &self,
        digest: ComponentDigest,
        bytes: Arc<[u8]>,
    ) -> Result<Arc<dyn Component>, Error> {
        if let Some(component) = self.cached(digest) {
            return Ok(component);
        }
        let hashed = Arc::clone(&bytes);
        match blocking(move || digest_of(&hashed)).await {
            Some(found) if found == digest => {}
            Some(found) => {
                return Err(Error::WrongBytes {
                    expected: digest,
                    found,
                });
            }
            None => return Err(Error::Busy("the host is shutting down".to_owned())),
        }
        match self.compiled(digest, bytes).await {
            Ok(component) => Ok(component),
            Err(check::Error::Host(error)) => Err(error),
            Err(check::Error::Rejected(reason)) => Err(Error::Unusable { digest, reason }),
        }
    }

    /// From memory, from the cache, or compiled. The bytes are those of the digest.
    async fn compiled(
        &self,
        digest: ComponentDigest,
        bytes: Arc<[u8]>,
    ) -> Result<Arc<Compiled>, check::Error> {
        let slot = self.slot(digest);
        let made = slot.get_or_try_init(async || match self.load_compiled(digest).await {
            Some(component) => Ok(component),
            None => self.compile(digest, bytes).await,
        });
        let made = made.await.cloned();
        if made.is_err() {
            self.components().forget_if_empty(digest);
        }
        made
    }

    async fn load_compiled(&self, digest: ComponentDigest) -> Option<Arc<Compiled>> {
        let inner = Arc::clone(&self.0);
        blocking(move || {
            let code = inner.cache.as_ref()?.load(digest)?;
            // Code of another build has another name; but the pools may have been made smaller.
            inner.link(digest, &code, None).ok()
        })
        .await?
    }

    async fn compile(
        &self,
        digest: ComponentDigest,
        bytes: Arc<[u8]>,
    ) -> Result<Arc<Compiled>, check::Error> {
        // Never closed.
        let permit = Arc::clone(&self.0.compiles)
            .acquire_owned()
            .await
            .map_err(|_| Rejected::CompilerFailed)?;
        let inner = Arc::clone(&self.0);
        let compiled = blocking(move || {
            // Whoever asked may have left; the compile goes on, and so does its claim to a core.
            let _permit = permit;
            let code = match compiler::compile(
                &inner.runtime.engine,
                inner.compile_worker.as_ref(),
                &bytes,
            ) {
                Ok(code) => code,
                Err(Failed::Rejected(rejected)) => return Err(rejected.into()),
                Err(Failed::Host(reason)) => return Err(Error::Compiler(reason).into()),
            };
            let compiled = inner.link(digest, &code, Some(&bytes))?;
            if let Some(cache) = &inner.cache {
                cache.keep(digest, &bytes, &code);
            }
            Ok(compiled)
        });
        compiled.await.ok_or(Rejected::CompilerFailed)?
    }

    fn slot(&self, digest: ComponentDigest) -> Arc<OnceCell<Arc<Compiled>>> {
        self.components().slot(digest, self.0.components_max)
    }

    fn components(&self) -> MutexGuard<'_, Components> {
        // Nothing under the lock can be left half done.
        self.0
            .components
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Ties a component to what it imports, once for all its instances. Without its bytes it came
    /// from the cache, which has them.
    fn link(
        &self,
        digest: ComponentDigest,
        code: &Code,
        bytes: Option<&Arc<[u8]>>,
    ) -> Result<Arc<Compiled>, Rejected> {
        let component = code
            .load(&self.runtime.engine)
            .map_err(|error| Rejected::Invalid(trap::chain(&error)))?;
        let unlinkable = |error: wasmtime::Error| Rejected::Unlinkable(trap::chain(&error));
        let linked = self
            .linker
            .instantiate_pre(&component)
            .map_err(unlinkable)?;
        let pre = WorkflowPre::new(linked).map_err(unlinkable)?;
        let source = match (&self.cache, bytes) {
            (Some(cache), _) => Source::Cache(Arc::clone(cache)),
            (None, bytes) => Source::Memory(bytes.cloned().unwrap_or_default()),
        };
        Ok(Arc::new(Compiled::new(
            digest,
            pre,
            source,
            self.runtime.clone(),
        )))
    }
}

impl Components {
    fn get(&mut self, digest: ComponentDigest) -> Option<Arc<Compiled>> {
        let slot = self.by_digest.get_mut(&digest)?;
        self.uses += 1;
        slot.last_use = self.uses;
        slot.component.get().cloned()
    }

    /// The component's place; the least recently used makes room for it. Whoever still runs the
    /// one that goes keeps it alive.
    fn slot(
        &mut self,
        digest: ComponentDigest,
        components_max: usize,
    ) -> Arc<OnceCell<Arc<Compiled>>> {
        self.uses += 1;
        if !self.by_digest.contains_key(&digest)
            && self.by_digest.len() >= components_max
            && let Some(oldest) = self
                .by_digest
                .iter()
                .min_by_key(|(_, slot)| slot.last_use)
                .map(|(digest, _)| *digest)
        {
            self.by_digest.remove(&oldest);
        }
        let slot = self.by_digest.entry(digest).or_insert_with(|| Slot {
            component: Arc::default(),
            last_use: 0,
        });
        slot.last_use = self.uses;
        Arc::clone(&slot.component)
    }

    fn forget_if_empty(&mut self, digest: ComponentDigest) {
        if self
            .by_digest
            .get(&digest)
            .is_some_and(|slot| !slot.component.initialized())
        {
            self.by_digest.remove(&digest);
        }
    }
}

fn digest_of(bytes: &[u8]) -> ComponentDigest {
    ComponentDigest::from_bytes(Sha256::digest(bytes).into())
}

/// Runs what takes long off the async threads. `None` if it panicked, or the runtime is ending.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
