//! Where an instruction of a component comes from in its source: looked up in the debug sections
//! of the component's own bytes, for traps only.
//!
//! Those sections are the guest's, so they may be anything: their size is bounded, and so is the
//! time spent on them. Whoever asks does so off the async threads.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use addr2line::gimli::{self, EndianSlice, LittleEndian};
use wasmparser::{Parser, Payload};

/// Debug sections of one module, in bytes, that are looked into. Those of a Rust guest with all of
/// the standard library have 2 MiB.
const DEBUG_BYTES_MAX: usize = 32 * 1024 * 1024;

/// For all frames of one backtrace; what is not found by then is shown without its place.
const LOOKUP_MAX: Duration = Duration::from_millis(500);

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The debug sections of a component's modules.
pub(crate) struct Symbols<'a> {
    modules: Vec<Module<'a>>,
    until: Instant,
}

struct Module<'a> {
    /// Of its instructions, in the component's bytes.
    code: Range<usize>,
    context: addr2line::Context<Reader<'a>>,
}

/// A place in the source.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub(crate) function: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
}

impl<'a> Symbols<'a> {
    /// Those of a component. What cannot be read counts as not there.
    pub(crate) fn of(component: &'a [u8]) -> Self {
        let modules = sections(component).into_iter().filter_map(|found| {
            let size: usize = found.debug.values().map(|bytes| bytes.len()).sum();
            if size == 0 || size > DEBUG_BYTES_MAX {
                return None;
            }
            let section = |id: gimli::SectionId| {
                let bytes = found.debug.get(id.name()).copied().unwrap_or_default();
                Ok::<_, gimli::Error>(EndianSlice::new(bytes, LittleEndian))
            };
            let context = addr2line::Context::from_dwarf(gimli::Dwarf::load(section).ok()?).ok()?;
            Some(Module {
                code: found.code,
                context,
            })
        });
        Self {
            modules: modules.collect(),
            until: Instant::now() + LOOKUP_MAX,
        }
    }

    /// Of a component that has none, or whose bytes are not at hand.
    pub(crate) fn none() -> Self {
        Self {
            modules: Vec::new(),
            until: Instant::now(),
        }
    }

    /// The places of an instruction: of the functions inlined there, innermost first, and of the
    /// function itself last.
    pub(crate) fn places(&self, offset: usize) -> Vec<Place> {
        if Instant::now() >= self.until {
            return Vec::new();
        }
        let Some(module) = self
            .modules
            .iter()
            .find(|module| module.code.contains(&offset))
        else {
            return Vec::new();
        };
        // Addresses in debug sections count from the start of the code section.
        let address = (offset - module.code.start) as u64;
        let mut places = Vec::new();
        if let Ok(mut frames) = module.context.find_frames(address).skip_all_loads() {
            while let Ok(Some(frame)) = frames.next() {
                let location = frame.location.unwrap_or(addr2line::Location {
                    file: None,
                    line: None,
                    column: None,
                });
                places.push(Place {
                    function: frame
                        .function
                        .and_then(|name| Some(name.raw_name().ok()?.into_owned())),
                    file: location.file.map(str::to_owned),
                    line: location.line,
                    column: location.column,
                });
            }
        }
        places
    }
}

/// What a core module of a component has to look into.
#[derive(Default)]
struct Sections<'a> {
    code: Range<usize>,
    debug: HashMap<&'a str, &'a [u8]>,
}

fn sections(component: &[u8]) -> Vec<Sections<'_>> {
    let mut done = Vec::new();
    // Of the modules and components that the parser is inside of.
    let mut open = vec![Sections::default()];
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => {
                open.push(Sections::default());
            }
            Ok(Payload::End(_)) => done.extend(open.pop()),
            Ok(Payload::CodeSectionStart { range, .. }) => {
                if let Some(module) = open.last_mut() {
                    module.code = range;
                }
            }
            Ok(Payload::CustomSection(section)) if section.name().starts_with(".debug_") => {
                if let Some(module) = open.last_mut() {
                    module.debug.insert(section.name(), section.data());
                }
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    done
}
