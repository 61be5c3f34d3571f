use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, OneofDescriptorProto,
};

use super::ProtobufFormat;
use crate::connectors::testing::{batch, lines, schema, table};
use crate::error::Result;
use crate::formats::{DecodedColumns, Format, FormatOptions, Records};

fn field(name: &str, number: i32, t: Type, of: Option<&str>) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        r#type: Some(t.into()),
        type_name: of.map(str::to_string),
        label: Some(Label::Optional.into()),
        ..FieldDescriptorProto::default()
    }
}

fn repeated(field: FieldDescriptorProto) -> FieldDescriptorProto {
    FieldDescriptorProto {
        label: Some(Label::Repeated.into()),
        ..field
    }
}

/// `message Order` of proto3, with a field of every kind; `note` is `optional`.
fn set() -> FileDescriptorSet {
    let mut note = field("note", 3, Type::String, None);
    note.proto3_optional = Some(true);
    note.oneof_index = Some(0);
    let value = |name: &str, number| EnumValueDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        options: None,
    };
    let entry = DescriptorProto {
        name: Some("CountsEntry".into()),
        field: vec![
            field("key", 1, Type::String, None),
            field("value", 2, Type::Int64, None),
        ],
        options: Some(MessageOptions {
            map_entry: Some(true),
            ..MessageOptions::default()
        }),
        ..DescriptorProto::default()
    };
    let item = DescriptorProto {
        name: Some("Item".into()),
        field: vec![field("name", 1, Type::String, None)],
        ..DescriptorProto::default()
    };
    let order = DescriptorProto {
        name: Some("Order".into()),
        field: vec![
            field("id", 1, Type::Int64, None),
            field("state", 2, Type::Enum, Some(".shop.State")),
            note,
            repeated(field("tags", 4, Type::String, None)),
            repeated(field(
                "counts",
                5,
                Type::Message,
                Some(".shop.Order.CountsEntry"),
            )),
            field("item", 6, Type::Message, Some(".shop.Order.Item")),
            field("price", 7, Type::Double, None),
            field("data", 8, Type::Bytes, None),
        ],
        nested_type: vec![entry, item],
        oneof_decl: vec![OneofDescriptorProto {
            name: Some("_note".into()),
            options: None,
        }],
        ..DescriptorProto::default()
    };
    FileDescriptorSet {
        file: vec![FileDescriptorProto {
            name: Some("shop.proto".into()),
            package: Some("shop".into()),
            syntax: Some("proto3".into()),
            message_type: vec![order],
            enum_type: vec![EnumDescriptorProto {
                name: Some("State".into()),
                value: vec![value("OPEN", 0), value("PAID", 1)],
                ..EnumDescriptorProto::default()
            }],
            ..FileDescriptorProto::default()
        }],
    }
}

/// Runs `test` with the options of a table of the message.
fn with_options<T>(more: &[(&str, &str)], test: impl FnOnce(&[(&str, &str)]) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.pb");
    std::fs::write(&file, set().encode_to_vec()).unwrap();
    let path = file.display().to_string();
    let mut options = vec![("protobuf.descriptor-set", path.as_str())];
    if !more.iter().any(|(k, _)| k.contains("message")) {
        options.push(("protobuf.message-name", "shop.Order"));
    }
    options.extend(more);
    test(&options)
}

fn decode(columns: &str, options: &[(&str, &str)], records: &[Vec<u8>]) -> Result<Vec<String>> {
    let t = table(columns, options);
    let decoding = ProtobufFormat.decoding(&FormatOptions::new(&t, "protobuf."))?;
    let mut decoder = decoding.decoder(&DecodedColumns::all(&t.physical))?;
    for record in records {
        decoder.decode(record)?;
    }
    Ok(lines(&decoder.finish()?, &schema(columns)))
}

fn encode(columns: &str, options: &[(&str, &str)], data: &str) -> Result<Vec<Vec<u8>>> {
    let t = table(columns, options);
    let encoding = ProtobufFormat.encoding(&FormatOptions::new(&t, "protobuf."))?;
    let mut records = Records::default();
    let mut encoder = encoding.encoder(&t.physical)?;
    encoder.encode(&batch(columns, data), &mut records)?;
    Ok((0..records.len())
        .filter_map(|i| records.get(i).map(<[u8]>::to_vec))
        .collect())
}

const ALL: &str = "id BIGINT, state STRING, note STRING, tags ARRAY<STRING>, \
                   counts MAP<STRING, BIGINT>, item ROW<name STRING>, price DOUBLE";

#[test]
fn every_kind_of_field_comes_back() {
    with_options(&[], |options| {
        let data = "+I|7|PAID|x|[\"b\", \"a\"]|{\"k\": 1, \"c\": 2}|{\"name\": \"n\"}|1.5";
        let records = encode(ALL, options, data).unwrap();
        let rows = decode(ALL, options, &records).unwrap();
        assert_eq!(rows, ["+I[7, PAID, x, [b, a], {c=2, k=1}, +I[n], 1.5]"]);
        // Field 1 as a varint, field 2 likewise.
        let short = encode("id BIGINT, state INT", options, "+I|7|1").unwrap();
        assert_eq!(short, [vec![0x08, 7, 0x10, 1]]);
    });
}

#[test]
fn what_is_not_set_is_null_if_the_message_can_tell() {
    let expected = "+I[0, OPEN, null, [], {}, null, 0.0]";
    with_options(&[], |options| {
        let rows = decode(ALL, options, &[Vec::new()]).unwrap();
        assert_eq!(rows, [expected]);
    });
    with_options(&[("protobuf.read-default-values", "true")], |options| {
        let rows = decode("note STRING", options, &[Vec::new()]).unwrap();
        assert_eq!(rows, ["+I[]"]);
    });
    with_options(
        &[("protobuf.write-null-string-literal", "nil")],
        |options| {
            let records =
                encode("tags ARRAY<STRING>, note STRING", options, "+I|[null]|\\N").unwrap();
            let rows = decode("tags ARRAY<STRING>, note STRING", options, &records).unwrap();
            assert_eq!(rows, ["+I[[nil], null]"]);
        },
    );
}

#[test]
fn names_and_types_are_checked() {
    with_options(
        &[("protobuf.message-class-name", "com.shop.ShopProto$Order")],
        |options| {
            decode("id BIGINT", options, &[]).unwrap();
            let missing = decode("idd BIGINT", options, &[]).unwrap_err();
            assert!(missing.message().contains("'idd'"), "{missing}");
            let wrong = decode("id STRING", options, &[]).unwrap_err();
            assert!(wrong.message().contains("STRING"), "{wrong}");
            let nested = decode("item ROW<nam STRING>", options, &[]).unwrap_err();
            assert!(nested.message().contains("'nam'"), "{nested}");
        },
    );
    with_options(&[("protobuf.message-name", "shop.Ordr")], |options| {
        let error = decode("id BIGINT", options, &[]).unwrap_err();
        assert!(error.hint_text().unwrap().contains("shop.Order"), "{error}");
    });
}

#[test]
fn bad_bytes_are_an_error_or_skipped() {
    let bad = vec![0x0a, 0x7f];
    with_options(&[], |options| {
        assert!(decode("id BIGINT", options, std::slice::from_ref(&bad)).is_err());
    });
    with_options(&[("protobuf.ignore-parse-errors", "true")], |options| {
        let rows = decode("id BIGINT", options, &[bad.clone(), vec![8, 1]]).unwrap();
        assert_eq!(rows, ["+I[1]"]);
    });
}
