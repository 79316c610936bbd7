//! Components written by hand, as small as they can be.

use std::path::Path;
use std::sync::Arc;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A component that offers one workflow, `w`, which never returns.
pub(crate) fn small() -> Arc<[u8]> {
    Small::default().build()
}

/// The parts of a component that a test may want to be otherwise.
pub(crate) struct Small {
    /// Body of `describe`; 4096 is the address of a manifest with the workflow `w`, and 8192 of
    /// an empty one.
    pub(crate) describe: &'static str,
    /// Body of `run`, which must leave the address of a completion.
    pub(crate) run: &'static str,
    /// Imports of the core module.
    pub(crate) imports: &'static str,
    /// Further fields of the core module.
    pub(crate) fields: String,
}

impl Default for Small {
    fn default() -> Self {
        Self {
            describe: "i32.const 4096",
            run: "unreachable",
            imports: "",
            fields: String::new(),
        }
    }
}

impl Small {
    pub(crate) fn build(&self) -> Arc<[u8]> {
        let Self {
            describe,
            run,
            imports,
            fields,
        } = self;
        let core = format!(
            r#"(module
                {imports}
                (memory (export "memory") 1)
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 16384)
                (func (export "stepwell:workflow/guest@0.1.0#describe") (result i32) {describe})
                (func (export "stepwell:workflow/guest@0.1.0#run")
                    (param i32 i32 i32 i32 i32) (result i32) {run})
                (func (export "stepwell:workflow/guest@0.1.0#run-task")
                    (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
                {fields}
                (data (i32.const 1024) "w")
                ;; A workflow-spec whose name is the one byte at 1024, and nothing else.
                (data (i32.const 2048) "\00\04\00\00\01\00\00\00")
                ;; A manifest whose list of workflows is the one spec at 2048.
                (data (i32.const 4096) "\00\00\00\00\00\00\00\00\00\08\00\00\01\00\00\00")
            )"#
        );
        encode(&wat::parse_str(core).unwrap())
    }
}

fn encode(core: &[u8]) -> Arc<[u8]> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit"))
        .unwrap();
    let world = resolve.select_world(&[package], Some("workflow")).unwrap();
    let mut module = core.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    // Not validated: some are meant to be invalid.
    ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
        .into()
}
