//! Compiled code on disk: found again after a restart, and never believed when it is not ours.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use stepwell_core::id::ComponentDigest;
use stepwell_core::limits::Limits;
use stepwell_sandbox::{Config, Error, Sandbox};
use tempfile::TempDir;

use crate::small::{Small, small};

fn open(folder: &Path) -> Result<Sandbox, Error> {
    Sandbox::new(Config {
        cache_folder: Some(folder.to_owned()),
        instances_max: 10,
        ..Config::default()
    })
}

/// A folder with one component's code in it.
struct Filled {
    folder: TempDir,
    digest: ComponentDigest,
    code: PathBuf,
}

async fn filled() -> Filled {
    let folder = tempfile::tempdir().unwrap();
    let digest = open(folder.path())
        .unwrap()
        .check(small(), &Limits::default())
        .await
        .unwrap()
        .digest;
    let code = code_files(folder.path()).pop().unwrap();
    Filled {
        folder,
        digest,
        code,
    }
}

fn code_files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "code")
        })
        .collect()
}

impl Filled {
    /// Whether a new host compiles the component again, which replaces the file.
    async fn is_compiled_again(&self) -> bool {
        let before = fs::symlink_metadata(&self.code)
            .map(|found| found.ino())
            .ok();
        let sandbox = open(self.folder.path()).unwrap();
        sandbox.load(self.digest, small()).await.unwrap();
        fs::symlink_metadata(&self.code)
            .map(|found| found.ino())
            .ok()
            != before
    }
}

#[tokio::test]
async fn a_restart_finds_the_code_again() {
    let filled = filled().await;
    assert!(!filled.is_compiled_again().await);
}

#[tokio::test]
async fn folder_key_and_code_are_private() {
    let filled = filled().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&filled.folder.path().join("key")), 0o600);
    assert_eq!(mode(&filled.code), 0o600);
    let inner = filled.folder.path().join("inner");
    open(&inner).unwrap();
    assert_eq!(mode(&inner), 0o700);
    let mut names: Vec<String> = fs::read_dir(filled.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_by_key(String::len);
    assert_eq!(names.len(), 4, "no temporary file is left: {names:?}");
}

#[tokio::test]
async fn damaged_code_is_compiled_again() {
    let filled = filled().await;
    let whole = fs::read(&filled.code).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let cases = [
        flipped(0),
        flipped(10),
        flipped(whole.len() / 2),
        flipped(whole.len() - 1),
        whole[..whole.len() - 1].to_vec(),
        whole[..20].to_vec(),
        Vec::new(),
        [whole.as_slice(), b"more"].concat(),
    ];
    for (case, bytes) in cases.into_iter().enumerate() {
        fs::write(&filled.code, bytes).unwrap();
        assert!(filled.is_compiled_again().await, "case {case}");
        assert!(!filled.is_compiled_again().await, "case {case} is repaired");
    }
}

#[tokio::test]
async fn code_of_another_component_host_or_key_is_compiled_again() {
    let ours = filled().await;

    let other = Small {
        run: "i32.const 0",
        ..Small::default()
    }
    .build();
    open(ours.folder.path())
        .unwrap()
        .check(other, &Limits::default())
        .await
        .unwrap();
    let others_code = code_files(ours.folder.path())
        .into_iter()
        .find(|path| *path != ours.code)
        .unwrap();
    fs::copy(&others_code, &ours.code).unwrap();
    assert!(
        ours.is_compiled_again().await,
        "another component under our name"
    );

    let theirs = filled().await;
    fs::copy(&theirs.code, &ours.code).unwrap();
    assert!(
        ours.is_compiled_again().await,
        "code under another host's key"
    );

    fs::remove_file(ours.folder.path().join("key")).unwrap();
    assert!(ours.is_compiled_again().await, "a new key");
}

#[tokio::test]
async fn a_link_in_place_of_code_is_replaced_and_what_it_points_to_is_left_alone() {
    let filled = filled().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("precious");
    fs::write(&target, "precious").unwrap();
    fs::remove_file(&filled.code).unwrap();
    symlink(&target, &filled.code).unwrap();
    assert!(filled.is_compiled_again().await);
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert!(fs::symlink_metadata(&filled.code).unwrap().is_file());
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o770)).unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("its group or everybody may write to it") && error.contains("chmod 700"),
        "{error}"
    );
}

#[test]
fn a_folder_that_is_a_link_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    symlink(tempfile::tempdir().unwrap().keep(), &link).unwrap();
    let error = open(&link).unwrap_err().to_string();
    assert!(error.contains("it is a link"), "{error}");
}

#[test]
fn a_key_that_others_may_read_or_that_is_damaged_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).unwrap();
    let key = folder.path().join("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("others may read or write it") && error.contains("chmod 600"),
        "{error}"
    );

    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&key, "short").unwrap();
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("delete it"), "{error}");
}
