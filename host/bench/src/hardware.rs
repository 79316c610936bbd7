//! What it was measured on.

use std::path::Path;

/// The machine, and what else it was doing.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Hardware {
    /// The processor, as it calls itself.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// Where the data was.
    pub folder: String,
    /// The file system of that folder.
    pub file_system: String,
    /// Whether a sync costs nothing there, since nothing is kept on a disk.
    pub is_in_memory: bool,
    /// Processes that wanted a core, over the last minute, when the bench began.
    pub load_before: f64,
    /// The same when it ended, the bench itself included.
    pub load_after: f64,
}

impl Hardware {
    /// Looks at the machine. What it does not tell is `unknown` or 0.
    pub(crate) fn look(folder: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let file_system = std::fs::canonicalize(folder)
            .ok()
            .and_then(|folder| file_system(&read("/proc/self/mounts"), &folder))
            .unwrap_or_else(|| "unknown".to_owned());
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name")
                .unwrap_or("unknown")
                .to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mib: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.strip_suffix(" kB")?.parse::<u64>().ok())
                .map_or(0, |kib| kib / 1024),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            folder: folder.parent().unwrap_or(folder).display().to_string(),
            is_in_memory: matches!(file_system.as_str(), "tmpfs" | "ramfs"),
            file_system,
            load_before: load(),
            load_after: 0.0,
        }
    }

    /// With the load as it is now.
    #[must_use]
    pub(crate) fn looked_again(self) -> Self {
        Self {
            load_after: load(),
            ..self
        }
    }
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| found.trim() == name)
        .map(|(_, value)| value.trim())
}

/// The type of the innermost mount that has the folder; of two at one place the later one counts.
fn file_system(mounts: &str, folder: &Path) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (place, kind) = (words.nth(1)?, words.next()?);
            folder.starts_with(place).then_some((place.len(), kind))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind.to_owned())
}

fn load() -> f64 {
    std::fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_tells_the_file_system() {
        let mounts =
            "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/disk xfs rw 0 0\n";
        for (folder, kind) in [
            ("/home/a", "ext4"),
            ("/tmp", "tmpfs"),
            ("/tmp/a", "tmpfs"),
            ("/tmpfile", "ext4"),
            ("/tmp/disk/a", "xfs"),
        ] {
            assert_eq!(
                file_system(mounts, Path::new(folder)).as_deref(),
                Some(kind),
                "{folder}"
            );
        }
        let twice = "/dev/vda / ext4 rw 0 0\noverlay / overlay rw 0 0\n";
        assert_eq!(
            file_system(twice, Path::new("/a")).as_deref(),
            Some("overlay")
        );
        assert_eq!(file_system("", Path::new("/a")), None);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 1\nmodel name\t: AMD EPYC\n";
        assert_eq!(field(text, "model name"), Some("AMD EPYC"));
        assert_eq!(field(text, "cpu MHz"), None);
    }
}
