//! What the docs say of the source is there.

use stepwell_tests::root;

#[test]
fn every_test_that_the_docs_name_exists() {
    let docs = root().join("docs");
    let page = std::fs::read_to_string(docs.join("semantics.md")).unwrap();
    // [`name`](path)
    let links = page.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        Some((name, rest.split_once(')')?.0))
    });
    let mut count = 0;
    for (name, path) in links {
        let source = std::fs::read_to_string(docs.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(
            source.contains(&format!("fn {name}(")),
            "{path} has no {name}"
        );
        count += 1;
    }
    assert!(count > 40, "only {count} tests are named");
}
