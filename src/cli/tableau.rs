//! Bordered tables, as Flink's client draws them: of a running query, row by row, and of listings.

use std::io::{self, Write};

use chrono_tz::Tz;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::changelog::{ChangeBatch, RowKind};
use crate::types::text::{Printer, Style};
use crate::types::{Column, Schema, TypeKind};

/// What stands for NULL.
pub(crate) const NULL: &str = "<NULL>";

/// `sql-client.display.max-column-width`, unless set.
pub(crate) const MAX_COLUMN_WIDTH: usize = 30;

/// Makes texts of the values of a query's rows.
#[derive(Debug)]
pub(crate) struct Cells {
    printers: Vec<Printer>,
}

impl Cells {
    pub(crate) fn new(schema: &Schema, zone: Tz) -> Self {
        let printers = schema
            .columns
            .iter()
            .map(|c| Printer::new(&c.data_type, Style::Cast, zone))
            .collect();
        Self { printers }
    }

    /// The texts of row `i`.
    pub(crate) fn row(&self, batch: &ChangeBatch, i: usize) -> Vec<String> {
        self.printers
            .iter()
            .zip(batch.rows().columns())
            .map(|(printer, column)| {
                let mut text = String::new();
                if column.is_null(i) {
                    text.push_str(NULL);
                } else {
                    printer.write(column, i, &mut text);
                }
                text
            })
            .collect()
    }
}

/// The table of a query's changes, with a column `op`. Widths come from the types, because later
/// rows are not known.
#[derive(Debug)]
pub(crate) struct ChangeTable {
    cells: Cells,
    names: Vec<String>,
    widths: Vec<usize>,
}

impl ChangeTable {
    pub(crate) fn new(schema: &Schema, zone: Tz, max_width: usize) -> Self {
        let mut names = vec!["op".to_string()];
        let mut widths = vec![2];
        for column in &schema.columns {
            names.push(column.name.clone());
            widths.push(column_width(column, max_width));
        }
        Self {
            cells: Cells::new(schema, zone),
            names,
            widths,
        }
    }

    pub(crate) fn write_header(&self, out: &mut impl Write) -> io::Result<()> {
        write_border(out, &self.widths)?;
        write_row(out, &self.widths, self.names.iter().map(String::as_str))?;
        write_border(out, &self.widths)
    }

    pub(crate) fn write_batch(&self, out: &mut impl Write, batch: &ChangeBatch) -> io::Result<()> {
        for i in 0..batch.len() {
            self.write_texts(out, batch.kind(i), &self.cells.row(batch, i))?;
        }
        Ok(())
    }

    /// Writes a row whose values are texts already.
    pub(crate) fn write_texts(
        &self,
        out: &mut impl Write,
        kind: RowKind,
        row: &[String],
    ) -> io::Result<()> {
        let cells = std::iter::once(kind.symbol()).chain(row.iter().map(String::as_str));
        write_row(out, &self.widths, cells)
    }

    pub(crate) fn write_footer(&self, out: &mut impl Write) -> io::Result<()> {
        write_border(out, &self.widths)
    }
}

/// Cells that Flink's client gives a column of a type.
fn column_width(column: &Column, max_width: usize) -> usize {
    let seconds = |precision: u8, whole: usize| match precision {
        0 => whole,
        p => whole + 1 + usize::from(p),
    };
    let width = match &column.data_type.kind {
        TypeKind::TinyInt => 4,
        TypeKind::SmallInt => 6,
        TypeKind::Int => 11,
        TypeKind::BigInt => 20,
        TypeKind::Decimal(precision, _) => usize::from(*precision) + 3,
        TypeKind::Boolean => 5,
        TypeKind::Date => 10,
        TypeKind::Time(p) => seconds(*p, 8),
        TypeKind::Timestamp(p) | TypeKind::TimestampLtz(p) => seconds(*p, 19),
        _ => max_width,
    };
    let null = if column.data_type.nullable {
        NULL.len()
    } else {
        0
    };
    width.max(null).max(column.name.width())
}

/// A whole table, as wide as its content.
pub(crate) fn write_table(
    out: &mut impl Write,
    columns: &[String],
    rows: &[Vec<String>],
    max_width: usize,
) -> io::Result<()> {
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i));
        let widest = cells
            .flat_map(|cell| cell.lines())
            .map(UnicodeWidthStr::width)
            .max();
        let name = columns.get(i).map_or(0, |name| name.width());
        widest.unwrap_or(0).min(max_width).max(name)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    write_border(out, &widths)?;
    write_row(out, &widths, columns.iter().map(String::as_str))?;
    write_border(out, &widths)?;
    for row in rows {
        write_row(out, &widths, row.iter().map(String::as_str))?;
    }
    write_border(out, &widths)
}

fn write_border(out: &mut impl Write, widths: &[usize]) -> io::Result<()> {
    for width in widths {
        write!(out, "+{}", "-".repeat(width + 2))?;
    }
    writeln!(out, "+")
}

fn write_row<'a>(
    out: &mut impl Write,
    widths: &[usize],
    cells: impl Iterator<Item = &'a str>,
) -> io::Result<()> {
    for (cell, width) in cells.zip(widths) {
        let text = fitted(cell, *width);
        write!(
            out,
            "| {}{text} ",
            " ".repeat(width.saturating_sub(text.width()))
        )?;
    }
    writeln!(out, "|")
}

/// `text` on one line, cut with `...` where it is too wide.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.width() <= width {
        return text;
    }
    let mut cut = String::new();
    let mut used = 3;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        cut.push(c);
    }
    cut.push_str("...");
    cut
}

/// `1 row`, `2 rows`.
pub(crate) fn rows(n: u64) -> String {
    if n == 1 {
        "1 row".into()
    } else {
        format!("{n} rows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_as_wide_as_its_content_and_cuts_what_is_wider() {
        let mut out = Vec::new();
        let rows = vec![vec!["a".into()], vec!["0123456789abc".into()]];
        write_table(&mut out, &["table name".into()], &rows, 12).expect("a vector takes all");
        let text = String::from_utf8(out).expect("UTF-8");
        let want = "+--------------+\n|   table name |\n+--------------+\n|            a |\n| 012345678... |\n+--------------+\n";
        assert_eq!(text, want);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(fitted("日本語日本語", 8), "日本...");
    }
}
