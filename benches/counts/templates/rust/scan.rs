// Fields of a text by split, and a count by length.
// role text u8 text 9
// role table u32,u64 zero
$PHASE {
    let (mut fields, mut done) = (0, 0);
    while done < steps {
        for field in text.split(|c| *c == b',') {
            let h = (field.len() as u64).wrapping_mul(0x9E3779B97F4A7C15) >> 32;
            table[h as usize % table.len()] += 1;
            fields += 1;
        }
        done += text.len() as u64;
    }
    fields
}
