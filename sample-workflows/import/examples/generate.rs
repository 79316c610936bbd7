//! Makes `sales.csv`: `cargo run --release -p import --example generate > sample-workflows/import/sales.csv`
//!
//! The same file every time: the numbers come from a fixed seed. A quarter of the customers order
//! far more often than the rest, prices are those of a small shop, and some names have commas and
//! quotation marks in them, as names do.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

const SALES: u64 = 5_000;

const CUSTOMERS: [(&str, &str); 24] = [
    ("Atelier Brun & Fils", "FR"),
    ("Bäckerei Sommer", "DE"),
    ("Café Lumière, Lyon", "FR"),
    ("Clara Nowak", "PL"),
    ("Da Enzo", "IT"),
    ("Dublin Tea Rooms Ltd", "IE"),
    ("Elif Yıldız", "TR"),
    ("Fern \"The Kettle\" Hughes", "GB"),
    ("Grand Hôtel du Lac, S.A.", "CH"),
    ("Hanna Virtanen", "FI"),
    ("Iris Jansen", "NL"),
    ("José Ortega e Hijos, S.L.", "ES"),
    ("Kontor 7 GmbH", "DE"),
    ("Lindqvist Livs", "SE"),
    ("Maria Silva", "PT"),
    ("Nordlys Kaffe", "NO"),
    ("Olga Horvat", "HR"),
    ("Pension Alpenblick", "AT"),
    ("Quinn, Burke & Co", "IE"),
    ("Ristorante \"Il Pozzo\"", "IT"),
    ("Sofie Maes", "BE"),
    ("Teehaus am Markt", "DE"),
    ("Ursula Frei", "CH"),
    ("Vojtěch Dvořák", "CZ"),
];

const PRODUCTS: [(&str, u64); 16] = [
    ("Assam 250 g", 890),
    ("Cast-iron pot, 1.2 l", 5_490),
    ("Chai spices", 650),
    ("Darjeeling first flush 100 g", 1_490),
    ("Earl Grey 250 g", 790),
    ("Filter papers", 320),
    ("Gift box \"Four seasons\"", 3_900),
    ("Gunpowder 250 g", 720),
    ("Honey, lime blossom", 840),
    ("Jasmine pearls 100 g", 1_850),
    ("Matcha 40 g", 2_450),
    ("Milk oolong 100 g", 1_350),
    ("Peppermint 100 g", 480),
    ("Rooibos vanilla 250 g", 760),
    ("Tea glass, set of 2", 1_290),
    ("Whisk, bamboo", 1_590),
];

const DAYS_IN_MONTH: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A linear congruential generator with the constants of Knuth's MMIX.
struct Dice(u64);

impl Dice {
    /// From 0 up to but not including `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // The low bits of such a generator repeat soon.
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }
}

fn main() {
    let mut dice = Dice(2025);
    let (mut items, mut cents) = (0, 0);
    println!("sale,day,customer,country,product,quantity,unit_cents");
    for number in 0..SALES {
        // Spread over the year 2025, in order.
        let day = number * 365 / SALES;
        let regulars = CUSTOMERS.len() / 4;
        let (customer, country) = CUSTOMERS[if dice.roll(5) < 3 {
            dice.roll(regulars) * 4
        } else {
            dice.roll(CUSTOMERS.len())
        }];
        let (product, price) = PRODUCTS[dice.roll(PRODUCTS.len())];
        let quantity = [1, 1, 1, 1, 2, 2, 2, 3, 4, 6, 12][dice.roll(11)];
        // From a dozen on it is a tenth cheaper.
        let unit_cents = if quantity >= 12 {
            price - price / 10
        } else {
            price
        };
        items += quantity;
        cents += quantity * unit_cents;
        println!(
            "{},{},{},{country},{},{quantity},{unit_cents}",
            10_001 + number,
            date(day),
            quoted(customer),
            quoted(product)
        );
    }
    println!("TRAILER,{SALES},{items},{cents}");
}

/// A day of 2025, from 0.
fn date(mut day: u64) -> String {
    let mut month = 0;
    while day >= DAYS_IN_MONTH[month] {
        day -= DAYS_IN_MONTH[month];
        month += 1;
    }
    format!("2025-{:02}-{:02}", month + 1, day + 1)
}

/// A field as CSV has it.
fn quoted(field: &str) -> String {
    if field.contains([',', '"']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
