//! Columns that line up, colour or not.

use super::style::{Paint, Style};

/// A cell: text, and how it is painted. Widths count the text alone.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    paint: CellPaint,
}

#[derive(Debug, Clone, Copy)]
enum CellPaint {
    None,
    Paint(Paint),
    Status,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            paint: CellPaint::None,
        }
    }

    pub(crate) fn painted(paint: Paint, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            paint: CellPaint::Paint(paint),
        }
    }

    pub(crate) fn status(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            paint: CellPaint::Status,
        }
    }
}

/// Draws rows under headings, two spaces between columns, nothing behind the last.
pub(crate) fn table(style: Style, headings: &[&str], rows: &[Vec<Cell>]) -> String {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.text.chars().count());
        cells
            .chain([headings[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let heading: Vec<Cell> = headings
        .iter()
        .map(|text| Cell::painted(Paint::Dim, *text))
        .collect();
    let mut drawn = String::new();
    for row in std::iter::once(&heading).chain(rows) {
        let mut line = String::new();
        let mut gap = 0;
        for (cell, width) in row.iter().zip(&widths) {
            if !cell.text.is_empty() {
                line.push_str(&" ".repeat(gap));
                line.push_str(&match cell.paint {
                    CellPaint::None => cell.text.clone(),
                    CellPaint::Paint(paint) => style.paint(paint, &cell.text),
                    CellPaint::Status => style.status(&cell.text),
                });
                gap = 0;
            }
            gap += width - cell.text.chars().count() + 2;
        }
        drawn.push_str(&line);
        drawn.push('\n');
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_with_text() {
        let rows = [
            vec![Cell::new("a"), Cell::status("completed"), Cell::new("")],
            vec![Cell::new("longer"), Cell::new(""), Cell::new("x")],
        ];
        let drawn = table(Style::PLAIN, &["name", "status", "note"], &rows);
        assert_eq!(
            drawn,
            "name    status     note\na       completed\nlonger             x\n"
        );
    }
}
