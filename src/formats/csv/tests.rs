use proptest::prelude::*;

use super::*;
use crate::connectors::testing::{batch, lines, schema, table};
use crate::formats::{Cut, Records};

/// The rows of a file.
fn read(columns: &str, options: &[(&str, &str)], data: &str) -> Result<Vec<String>> {
    let t = table(columns, options);
    let format = CsvFormat.decoding(&FormatOptions::new(&t, "csv."))?;
    let mut decoder = format.decoder(&DecodedColumns::all(&t.physical))?;
    for record in split(format.splitter().as_mut(), data.as_bytes(), data.len()) {
        decoder.decode(&record)?;
    }
    let batch = decoder.finish()?;
    assert_eq!(batch.schema(), schema(columns).to_arrow());
    Ok(lines(&batch, &schema(columns)))
}

/// All records of `data` when it comes in pieces of `piece` bytes.
fn split(splitter: &mut dyn Splitter, data: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let (mut start, mut end) = (0, 0);
    let mut records = Vec::new();
    loop {
        let at_end = end == data.len();
        match splitter.next(&data[start..end], at_end) {
            Some(Cut { record, next }) => {
                records.push(data[start..end][record].to_vec());
                start += next;
            }
            None if at_end => return records,
            None => end = (end + piece.max(1)).min(data.len()),
        }
    }
}

const LAX: (&str, &str) = ("csv.ignore-parse-errors", "true");

#[test]
fn quotes_blanks_and_broken_lines() {
    let data = "1,a\n2,b,\n3,c,,\n4\n\n5,e\r\n   \n6,\"x\"\"y\"z\n7,\"open\nnext\"\n8,ab\"c\"\n9, \"sp\" ,\n10,\"q\" x\n11,last";
    assert_eq!(
        read("id INT, v STRING", &[LAX], data).unwrap(),
        [
            "+I[1, a]",
            "+I[2, b]",
            "+I[4, null]",
            "+I[null, null]",
            "+I[5, e]",
            "+I[null, null]",
            "+I[7, open\nnext]",
            "+I[8, ab\"c\"]",
            "+I[9,  \"sp\" ]",
            "+I[11, last]"
        ]
    );
    let options = [
        LAX,
        ("csv.allow-trailing-comma", "false"),
        ("csv.empty-string-as-null", "true"),
    ];
    assert_eq!(
        read("id STRING, v STRING", &options, "2,b,\n\n4\n").unwrap(),
        ["+I[null, null]", "+I[4, null]"]
    );
    let options = [LAX, ("csv.fail-on-missing-columns", "true")];
    assert!(read("a INT, b INT", &options, "1\n").unwrap().is_empty());
    let options = [("csv.ignore-trailing-unmappable", "true")];
    assert_eq!(read("a INT", &options, "1,2,3\n").unwrap(), ["+I[1]"]);
}

#[test]
fn errors_name_field_and_line() {
    let error = read("id INT, v STRING", &[], "x,y\n").unwrap_err();
    assert!(
        error.message().ends_with("field: id. 'x' is no INT"),
        "{error}"
    );
    assert!(read("id INT, v STRING", &[], "1\n").is_err());
    assert!(read("id INT, v STRING", &[], "1,2,3\n").is_err());
    assert!(read("id INT, v STRING", &[], "1,\"2").is_err());
}

#[test]
fn other_delimiters_quotes_escapes_and_comments() {
    let options = [
        ("csv.field-delimiter", ";"),
        ("csv.quote-character", "~"),
        ("csv.escape-character", "\\"),
        ("csv.allow-comments", "true"),
    ];
    let data = "# a comment line\n1;~x;y~;p\\;q\n#2;no;no\n\n 3;~say ~~it~~~;\\~t\n";
    assert_eq!(
        read("id INT, a STRING, b STRING", &options, data).unwrap(),
        ["+I[1, x;y, p;q]", "+I[3, say ~it~, ~t]"]
    );
    let options = [("csv.disable-quote-character", "true")];
    assert_eq!(
        read("a STRING, b STRING", &options, "\"k\",v\"\n").unwrap(),
        ["+I[\"k\", v\"]"]
    );
    let options = [("csv.field-delimiter", "\\t")];
    assert_eq!(
        read("a INT, b INT", &options, "1\t2\n").unwrap(),
        ["+I[1, 2]"]
    );
    let options = [("csv.escape-character", "\\")];
    assert_eq!(
        read(
            "a STRING, b STRING, c STRING",
            &options,
            "a\\,b,c\\nd,\"e\\\"f\"\n"
        )
        .unwrap(),
        ["+I[a,b, c\nd, e\"f]"]
    );
    let options = [("csv.trim-spaces", "true")];
    assert_eq!(
        read(
            "a INT, b STRING, c STRING",
            &options,
            "  1 , a b ,\" c \"\n2, \"x\" , y\n"
        )
        .unwrap(),
        ["+I[1, a b,  c ]", "+I[2, x, y]"]
    );
    assert!(read("a INT", &[("csv.field-delimiter", "ab")], "").is_err());
}

#[test]
fn nulls_arrays_and_rows() {
    let options = [("csv.null-literal", "NIL")];
    assert_eq!(
        read(
            "a INT, b STRING, c DOUBLE",
            &options,
            "1,NIL,NIL\nNIL,x,2.5\n3,\"NIL\",1\n"
        )
        .unwrap(),
        ["+I[1, null, null]", "+I[null, x, 2.5]", "+I[3, null, 1.0]"]
    );
    assert_eq!(
        read(
            "a ARRAY<STRING>, b ROW<x INT, y STRING>",
            &[],
            "a;b;;,1;q\n,2;\n"
        )
        .unwrap(),
        ["+I[[a, b, , ], +I[1, q]]", "+I[[], +I[2, ]]"]
    );
    assert_eq!(
        read("a ARRAY<INT>, b ROW<x INT, y INT>", &[LAX], "1;x,7\n").unwrap(),
        ["+I[[1, null], +I[7, null]]"]
    );
    assert!(read("a MAP<STRING, INT>", &[], "").is_err());
}

#[test]
fn typed_values() {
    let columns = "a DATE, b TIMESTAMP(3), c TIMESTAMP_LTZ(3), d TIME(0), e DECIMAL(3, 1), f BYTES, g BOOLEAN";
    let data = "2024-2-9,2024-02-30 00:00:00,2024-01-01 24:00:00Z,10:11:12.9,12.34,aGk=, TRUE \n";
    assert_eq!(
        read(columns, &[], data).unwrap(),
        [
            "+I[2024-02-09, 2024-02-29T00:00, 2024-01-02T00:00:00Z, 10:11:12, 12.3, [104, 105], true]"
        ]
    );
    assert_eq!(
        read("a SMALLINT, b DECIMAL(3, 1)", &[LAX], " 8 , 2.5 \n7.0,1\n").unwrap(),
        ["+I[8, null]", "+I[null, 1.0]"]
    );
}

fn write(columns: &str, options: &[(&str, &str)], data: &str) -> Vec<String> {
    let t = table(columns, options);
    let format = CsvFormat.encoding(&FormatOptions::new(&t, "csv.")).unwrap();
    let mut records = Records::default();
    let mut encoder = format.encoder(&t.physical).unwrap();
    encoder.encode(&batch(columns, data), &mut records).unwrap();
    (0..records.len())
        .map(|i| String::from_utf8_lossy(records.get(i).unwrap()).into_owned())
        .collect()
}

#[test]
fn lines_are_quoted_as_by_jackson() {
    let columns = "s STRING, d DECIMAL(10, 2), f DOUBLE, t TIME(3), ts TIMESTAMP(3)";
    let data = "+I|plain|100|1e10|10:11:12|2024-01-01T10:00:00.5\n\
                +I|with space|0.5|1.5|\\N|\\N\n\
                +I|say \"hi\"|0|0|\\N|\\N\n\
                +I|abcdefghijklmnopqrstuvwxyz|1|1|\\N|\\N\n\
                +I|ä#x|1|1|\\N|\\N\n\
                +I|a\\b|1|1|\\N|\\N";
    assert_eq!(
        write(columns, &[], data),
        [
            "plain,1E+2,1.0E10,10:11:12,\"2024-01-01 10:00:00.5\"",
            "\"with space\",0.5,1.5,,",
            "\"say \"\"hi\"\"\",0,0.0,,",
            "\"abcdefghijklmnopqrstuvwxyz\",1,1.0,,",
            "\"ä#x\",1,1.0,,",
            "\"a\\b\",1,1.0,,"
        ]
    );
    let options = [
        ("csv.field-delimiter", "|"),
        ("csv.quote-character", "~"),
        ("csv.escape-character", "\\"),
        ("csv.null-literal", "NIL"),
    ];
    assert_eq!(
        write(
            "id INT, s STRING",
            &options,
            "+I|2|a~b\n+I|3|\\N\n+I|4|a\\b\n+I|7|"
        ),
        ["2|~a~~b~", "3|NIL", "4|~a\\\\b~", "7|"]
    );
}

proptest! {
    #[test]
    fn records_do_not_depend_on_how_the_file_is_read(
        text in "[a\",\\n\\r #\\\\]{0,40}", piece in 1usize..5, comments: bool, trim: bool,
    ) {
        let flag = |b: bool| if b { "true" } else { "false" };
        let options = [
            ("csv.escape-character", "\\"),
            ("csv.allow-comments", flag(comments)),
            ("csv.trim-spaces", flag(trim)),
            LAX,
        ];
        let t = table("a STRING, b STRING", &options);
        let format = CsvFormat.decoding(&FormatOptions::new(&t, "csv.")).unwrap();
        let whole = split(format.splitter().as_mut(), text.as_bytes(), text.len());
        let pieces = split(format.splitter().as_mut(), text.as_bytes(), piece);
        prop_assert_eq!(&whole, &pieces);
        let mut decoder = format.decoder(&DecodedColumns::all(&t.physical)).unwrap();
        for record in whole {
            decoder.decode(&record).unwrap();
        }
        decoder.finish().unwrap();
    }

    #[test]
    fn bytes_never_panic(record in proptest::collection::vec(any::<u8>(), 0..60)) {
        let columns = "a INT, b ARRAY<DOUBLE>, c ROW<x DATE, y BYTES>";
        let t = table(columns, &[LAX]);
        let format = CsvFormat.decoding(&FormatOptions::new(&t, "csv.")).unwrap();
        let mut decoder = format.decoder(&DecodedColumns::all(&t.physical)).unwrap();
        decoder.decode(&record).unwrap();
        let rows = decoder.rows();
        prop_assert_eq!(decoder.finish().unwrap().len(), rows);
    }
}
