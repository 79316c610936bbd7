//! The import of the file that lies beside this crate, and of files that are not right.

use stepwell_sdk::testing::TestRun;

use super::*;

const FILE: &str = include_str!("../sales.csv");

fn run(csv: &str) -> Result<Totals, Error> {
    let import = Import {
        csv: csv.to_owned(),
        chunk_lines: chunk_lines(),
    };
    TestRun::new()
        .check_replay()
        .task(add_up)
        .run::<super::import>(import)
        .result
}

fn failure(csv: &str) -> Failure {
    match run(csv) {
        Err(Error::Failed(failure)) => failure,
        Err(Error::Step(error)) => error.cause,
        other => panic!("expected a failure, found {other:?}"),
    }
}

#[test]
fn the_file_adds_up_to_its_trailer() {
    let totals = run(FILE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(totals.sales, 5_000);
    assert_eq!(totals.cents_by_country.values().sum::<u64>(), totals.cents);
}

#[test]
fn chunks_keep_every_line_and_know_its_number() {
    let (sales, _) = split(FILE).unwrap_or_else(|failure| panic!("{failure}"));
    let chunks = chunks(sales, 250);
    assert_eq!(chunks.len(), 20);
    assert_eq!(
        chunks
            .iter()
            .map(|chunk| chunk.lines.as_str())
            .collect::<String>(),
        sales
    );
    let first_of_second = chunks[1].lines.lines().next();
    assert_eq!(first_of_second, FILE.lines().nth(chunks[1].first_line - 1));
}

#[test]
fn a_lost_line_is_noticed() {
    let mut lines: Vec<&str> = FILE.split_inclusive('\n').collect();
    lines.remove(1_234);
    let failure = failure(&lines.concat());
    assert_eq!(failure.kind, "totals-differ");
    assert_eq!(
        failure
            .read_details::<Totals>()
            .map(|totals| totals.map(|totals| totals.sales)),
        Some(Ok(4_999))
    );
}

#[test]
fn a_bad_line_is_named() {
    let csv = format!(
        "{HEADER}\n1,2025-01-01,Ada,DE,Tea,1,100\n2,2025-01-01,Bob,DE,Tea,many,100\nTRAILER,2,2,200\n"
    );
    let failure = failure(&csv);
    assert_eq!(failure.kind, "bad-line");
    assert!(failure.message.starts_with("line 3: "), "{failure}");
}

#[test]
fn a_file_that_was_cut_off_is_refused() {
    assert_eq!(
        failure(&FILE[..FILE.len() / 2]).message,
        "the file has no trailer; is it whole?"
    );
    assert_eq!(failure("").kind, "bad-file");
}
