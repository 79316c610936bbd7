//! Lesson 4: a file, imported by many tasks at once.
//!
//! The file closes with a trailer that says how many sales it has and what they add up to, as files
//! that are worth money do. The import adds up what its tasks have read, and fails unless it comes
//! to the same.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stepwell_sdk::futures::{FuturesUnordered, StreamExt};
use stepwell_sdk::{Ctx, Error, Failure, component, task, workflow};

#[cfg(test)]
mod tests;

/// The first line of the file.
const HEADER: &str = "sale,day,customer,country,product,quantity,unit_cents";

/// What the trailer begins with.
const TRAILER: &str = "TRAILER,";

/// What to import.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Import {
    /// The file as text: a header, one line for each sale, a trailer.
    csv: String,
    /// How many lines each task reads.
    #[serde(default = "chunk_lines")]
    chunk_lines: usize,
}

fn chunk_lines() -> usize {
    250
}

/// Sales added up: those of one chunk, or of the whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Totals {
    sales: u64,
    items: u64,
    cents: u64,
    cents_by_country: BTreeMap<String, u64>,
}

/// Some lines of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Chunk {
    /// The number of its first line in the file, from 1, for messages.
    first_line: usize,
    lines: String,
}

/// One line of the file.
#[derive(Debug, Deserialize)]
struct Sale {
    sale: u64,
    day: String,
    customer: String,
    country: String,
    product: String,
    quantity: u64,
    unit_cents: u64,
}

/// Imports a file of sales, and checks its totals against the file's own.
#[workflow]
async fn import(ctx: Ctx, import: Import) -> Result<Totals, Error> {
    let (sales, expected) = split(&import.csv)?;
    let mut tasks: FuturesUnordered<_> = chunks(sales, import.chunk_lines.max(1))
        .into_iter()
        .map(|chunk| ctx.call_task(add_up, chunk))
        .collect();
    let of = tasks.len();
    let mut totals = Totals::default();
    let mut done = 0;
    // Chunks come in as they are done, in whatever order; the journal keeps it.
    while let Some(chunk) = tasks.next().await {
        totals.add(chunk?);
        done += 1;
        ctx.publish("progress", &format!("{done} of {of} chunks"))?;
    }
    if (totals.sales, totals.items, totals.cents)
        != (expected.sales, expected.items, expected.cents)
    {
        let message = format!("the file says {expected:?}, its lines add up to {totals:?}");
        return Err(Failure::new("totals-differ", message)
            .permanent()
            .details(&totals)
            .into());
    }
    Ok(totals)
}

/// Reads and adds up one chunk; a line that is no sale fails the import and is named.
#[task]
fn add_up(chunk: Chunk) -> Result<Totals, Failure> {
    let mut totals = Totals::default();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(chunk.lines.as_bytes());
    for (line, sale) in (chunk.first_line..).zip(reader.deserialize()) {
        let bad = |found: &dyn std::fmt::Display| {
            Failure::new("bad-line", format!("line {line}: {found}")).permanent()
        };
        let sale: Sale = sale.map_err(|error| bad(&error))?;
        if sale.day.len() != 10
            || sale.customer.is_empty()
            || sale.product.is_empty()
            || sale.country.len() != 2
        {
            return Err(bad(&format!("sale {} is not complete", sale.sale)));
        }
        let cents = sale
            .quantity
            .checked_mul(sale.unit_cents)
            .ok_or_else(|| bad(&"the amount is too large"))?;
        totals.add(Totals {
            sales: 1,
            items: sale.quantity,
            cents,
            cents_by_country: BTreeMap::from([(sale.country, cents)]),
        });
    }
    Ok(totals)
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.sales += other.sales;
        self.items += other.items;
        self.cents += other.cents;
        for (country, cents) in other.cents_by_country {
            *self.cents_by_country.entry(country).or_default() += cents;
        }
    }
}

/// The lines between header and trailer, and what the trailer says.
fn split(file: &str) -> Result<(&str, Totals), Failure> {
    let bad = |found: &str| Failure::new("bad-file", found).permanent();
    let rest = file
        .strip_prefix(HEADER)
        .ok_or_else(|| bad(&format!("the file does not begin with `{HEADER}`")))?;
    let start = rest.find('\n').map_or(rest.len(), |end| end + 1);
    let body = rest[start..].trim_end();
    let trailer = body.rfind('\n').map_or(0, |end| end + 1);
    let numbers = body[trailer..]
        .strip_prefix(TRAILER)
        .ok_or_else(|| bad("the file has no trailer; is it whole?"))?;
    let numbers: Vec<u64> = numbers
        .split(',')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [sales, items, cents] = numbers[..] else {
        return Err(bad("the trailer is not `TRAILER,sales,items,cents`"));
    };
    Ok((
        &body[..trailer],
        Totals {
            sales,
            items,
            cents,
            cents_by_country: BTreeMap::new(),
        },
    ))
}

/// The lines in chunks. No sale has a line break in it, so lines can be cut without reading them.
fn chunks(sales: &str, chunk_lines: usize) -> Vec<Chunk> {
    let lines: Vec<&str> = sales.split_inclusive('\n').collect();
    let chunk = |(index, lines): (usize, &[&str])| Chunk {
        // Line 1 is the header.
        first_line: index * chunk_lines + 2,
        lines: lines.concat(),
    };
    lines.chunks(chunk_lines).enumerate().map(chunk).collect()
}

component! { workflows: [import], tasks: [add_up] }
