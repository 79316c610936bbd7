//! Compiled code on disk, so that a restart compiles nothing.
//!
//! Compiled code is executed as it is, without any check by the processor or by us: whoever can
//! put a file here that is believed can do what the host can. So the folder is private, and each
//! file carries an HMAC under a key that only the host can read, over the component's digest, the
//! engine's build and the code. A file that does not verify is as good as none. It is read once,
//! verified and loaded from that same memory.
//!
//! Beside the code lie the components themselves, for the lines of their backtraces: the digest in
//! their name tells whether they are whole.
//!
//! Losing the folder costs time and nothing else.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash as _, Hasher};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rand::Rng as _;
use sha2::{Digest as _, Sha256};
use stepwell_core::id::ComponentDigest;
use wasmtime::Engine;

use crate::code::Code;

/// Begins every file; a change of format changes it.
const MAGIC: &[u8; 8] = b"stepwel1";

const TAG_BYTES: usize = 32;

/// Before the code.
const HEAD_BYTES: usize = MAGIC.len() + TAG_BYTES;
const KEY_BYTES: usize = 32;

/// The file that holds the key.
const KEY_FILE: &str = "key";

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something about it could not be read or made.
    #[error(
        "cannot {action} {path} for the cache of compiled code: {source}; check the folder, or name another one"
    )]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Somebody else could put code there.
    #[error(
        "{path} cannot hold compiled code: {found}; code in it would run with the host's own rights, \
         so make it yours alone (chmod {mode:o}, chown) or name another folder"
    )]
    NotPrivate {
        /// The folder or the key file.
        path: PathBuf,
        /// What is wrong with it.
        found: &'static str,
        /// The permissions it should have.
        mode: u32,
    },
    /// The key file does not hold a key.
    #[error(
        "{path} does not hold a key of {KEY_BYTES} bytes; delete it, and the code is compiled again"
    )]
    DamagedKey {
        /// The key file.
        path: PathBuf,
    },
}

/// A private folder of compiled code, for one build of the engine.
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
    /// The engine's build and settings: code of another build is not for us.
    build: [u8; 32],
    temporaries: AtomicU64,
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Cache {
    /// Opens the folder, making it and its key if there are none.
    ///
    /// # Errors
    /// When it cannot be used, or is not private.
    pub(crate) fn open(folder: &Path, engine: &Engine) -> Result<Self, Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(io_error("create", folder))?;
        let owner = check_private_folder(folder)?;
        let key = read_or_make_key(folder, owner)?;

        let mut build = Sha256Hasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut build);
        Ok(Self {
            folder: folder.to_owned(),
            key,
            build: build.0.finalize().into(),
            temporaries: AtomicU64::new(0),
        })
    }

    /// The component's compiled code, if it is there and ours. Blocks on the disk.
    pub(crate) fn load(&self, digest: ComponentDigest) -> Option<Code> {
        let path = self.code_path(digest);
        let mut file = match fs::read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read compiled code; compiling again");
                return None;
            }
        };
        if !self.is_ours(digest, &file) {
            tracing::warn!(path = %path.display(), "compiled code is foreign or damaged; compiling again");
            return None;
        }
        Some(Code::from_cache(file.split_off(HEAD_BYTES)))
    }

    /// Keeps a component and its compiled code. Blocks on the disk. A failure is logged, and costs
    /// a compile later.
    pub(crate) fn keep(&self, digest: ComponentDigest, bytes: &[u8], code: &Code) {
        let path = self.code_path(digest);
        let tag: [u8; TAG_BYTES] = self
            .mac(digest, code.bytes())
            .finalize()
            .into_bytes()
            .into();
        let kept = self
            .replace(&path, &[MAGIC.as_slice(), &tag, code.bytes()])
            .and_then(|()| self.replace(&self.source_path(digest), &[bytes]));
        if let Err(error) = kept {
            tracing::warn!(path = %path.display(), %error, "cannot keep compiled code; it is compiled again after a restart");
        }
    }

    /// The component's own bytes, if they are there and whole. Blocks on the disk.
    pub(crate) fn source(&self, digest: ComponentDigest) -> Option<Vec<u8>> {
        let bytes = fs::read(self.source_path(digest)).ok()?;
        let found: [u8; 32] = Sha256::digest(&bytes).into();
        (found == *digest.as_bytes()).then_some(bytes)
    }

    fn code_path(&self, digest: ComponentDigest) -> PathBuf {
        let build: String = self.build[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.folder
            .join(format!("{}-{build}.code", hexadecimal(digest)))
    }

    fn source_path(&self, digest: ComponentDigest) -> PathBuf {
        self.folder.join(format!("{}.wasm", hexadecimal(digest)))
    }

    /// Whether we wrote this file, for this component, with this build of the engine.
    fn is_ours(&self, digest: ComponentDigest, file: &[u8]) -> bool {
        let Some((tag, code)) = file
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_at_checked(TAG_BYTES))
        else {
            return false;
        };
        self.mac(digest, code).verify_slice(tag).is_ok()
    }

    fn mac(&self, digest: ComponentDigest, code: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        // All but the last have a fixed length, so no two inputs run together.
        mac.update(MAGIC);
        mac.update(&self.build);
        mac.update(digest.as_bytes());
        mac.update(code);
        mac
    }

    /// Writes a file beside the old one and puts it in its place, so that a reader sees the one or
    /// the other, and never follows a link that somebody left there.
    fn replace(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let temporary = self
            .folder
            .join(format!("tmp-{}-{number}", std::process::id()));
        // Left by a process of the same number that died.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = new_private_file(&temporary)
            .and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)))
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

fn hexadecimal(digest: ComponentDigest) -> String {
    digest.to_string().trim_start_matches("sha256:").to_owned()
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io {
        action,
        path,
        source,
    }
}

fn new_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Checks that nobody else can put files into the folder; returns our own user id.
fn check_private_folder(folder: &Path) -> Result<u32, Error> {
    let not_private = |found| Error::NotPrivate {
        path: folder.to_owned(),
        found,
        mode: 0o700,
    };
    let found = fs::symlink_metadata(folder).map_err(io_error("look at", folder))?;
    if !found.is_dir() {
        return Err(not_private("it is a link or a file, not a folder"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(not_private("its group or everybody may write to it"));
    }
    // A file that we make belongs to us: the way to our own user id without a system call that
    // the standard library does not have.
    let probe = folder.join(format!("tmp-{}-owner", std::process::id()));
    let _ = fs::remove_file(&probe);
    let ours = new_private_file(&probe)
        .and_then(|file| file.metadata())
        .map_err(io_error("write to", folder))?
        .uid();
    fs::remove_file(&probe).map_err(io_error("remove a file from", folder))?;
    if found.uid() != ours {
        return Err(not_private("it belongs to another user"));
    }
    Ok(ours)
}

fn read_or_make_key(folder: &Path, owner: u32) -> Result<[u8; KEY_BYTES], Error> {
    let path = folder.join(KEY_FILE);
    if !path.try_exists().map_err(io_error("look at", &path))? {
        make_key(folder, &path)?;
    }
    let not_private = |found| Error::NotPrivate {
        path: path.clone(),
        found,
        mode: 0o600,
    };
    let found = fs::symlink_metadata(&path).map_err(io_error("look at", &path))?;
    if !found.is_file() {
        return Err(not_private("it is a link or a folder, not a file"));
    }
    if found.uid() != owner {
        return Err(not_private("it belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(not_private("others may read or write it"));
    }
    let mut key = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(KEY_BYTES as u64 + 1).read_to_end(&mut key))
        .map_err(io_error("read", &path))?;
    key.try_into().map_err(|_| Error::DamagedKey { path })
}

/// Makes a key, unless another host does so at the same time; then its key is the one.
fn make_key(folder: &Path, path: &Path) -> Result<(), Error> {
    let mut key = [0; KEY_BYTES];
    rand::rng().fill_bytes(&mut key);
    let temporary = folder.join(format!("tmp-{}-key", std::process::id()));
    let _ = fs::remove_file(&temporary);
    new_private_file(&temporary)
        .and_then(|mut file| file.write_all(&key).and_then(|()| file.sync_all()))
        .map_err(io_error("write", &temporary))?;
    let linked = fs::hard_link(&temporary, path);
    let _ = fs::remove_file(&temporary);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(io_error("write", path)(error))
        }
        _ => Ok(()),
    }
}

/// Feeds what wasmtime hashes into SHA-256; its 64 bits alone would be too few to rely on.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        unreachable!("the whole hash is taken instead")
    }
}
