//! The arithmetic of the events: every value from the number of its event.

/// 2024-01-01T00:00:00 UTC, ms.
pub(super) const BASE_TIME: i64 = 1_704_067_200_000;

/// The first id of persons and auctions.
const FIRST_ID: i64 = 1000;
/// Events that repeat their kinds: 1 person, 3 auctions, 46 bids.
const EPOCH: i64 = 50;
const AUCTIONS: i64 = 3;
/// Every so many persons or auctions one is hot.
const HOT: i64 = 100;
/// How many of the last persons are active, and of the last auctions open.
const ACTIVE_PERSONS: i64 = 1000;
const OPEN_AUCTIONS: i64 = 100;

const FIRST_NAMES: [&str; 11] = [
    "Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter",
];
const LAST_NAMES: [&str; 9] = [
    "Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris",
];
const CITIES: [&str; 10] = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
];
const STATES: [&str; 6] = ["AZ", "CA", "ID", "OR", "WA", "WY"];
const CHANNELS: [&str; 4] = ["Google", "Facebook", "Baidu", "Apple"];
/// How many channels there are beside the four.
const OTHER_CHANNELS: i64 = 10_000;
const POWERS: [i64; 6] = [1, 10, 100, 1000, 10_000, 100_000];

/// What an event is about. The order is that of `event_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Person,
    Auction,
    Bid,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Person, Self::Auction, Self::Bid];

    /// The kind of event `n`.
    pub(super) fn of(n: i64) -> Self {
        match n % EPOCH {
            0 => Self::Person,
            1..=AUCTIONS => Self::Auction,
            _ => Self::Bid,
        }
    }
}

/// Draw `k` of event `n`.
fn draw(n: i64, k: i64) -> u64 {
    let number = n.wrapping_mul(256).wrapping_add(k).wrapping_add(1);
    let mut z = number.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Draw `k` of event `n`, from 0 to below `m`, which is below 2^31.
fn below(n: i64, k: i64, m: i64) -> i64 {
    // both fit 32 bits, whose division is the fast one
    let drawn = (draw(n, k) >> 33) as u32;
    i64::from(drawn % m as u32)
}

fn index(n: i64, k: i64, len: usize) -> usize {
    below(n, k, len as i64) as usize
}

/// Two letters for every ten bits.
const PAIRS: [[u8; 2]; 1024] = {
    let mut pairs = [[0; 2]; 1024];
    let mut i = 0;
    while i < 1024 {
        pairs[i] = [b'a' + (i & 31) as u8 % 26, b'a' + (i >> 5) as u8 % 26];
        i += 1;
    }
    pairs
};

/// Appends `len` letters from the draws `k`, `k + 1`, ... of event `n`, twelve a draw.
fn letters(n: i64, k: i64, len: usize, out: &mut Vec<u8>) {
    let mut twelve = [0; 12];
    let mut k = k;
    let mut left = len;
    while left > 0 {
        let bits = draw(n, k);
        for (i, pair) in twelve.chunks_exact_mut(2).enumerate() {
            pair.copy_from_slice(&PAIRS[(bits >> (10 * i)) as usize & 1023]);
        }
        let taken = left.min(12);
        out.extend_from_slice(&twelve[..taken]);
        left -= taken;
        k += 1;
    }
}

fn price(n: i64, k: i64) -> i64 {
    (100 + below(n, k, 900)) * POWERS[index(n, k + 1, POWERS.len())]
}

/// Persons that there are at event `n`.
fn persons(n: i64) -> i64 {
    n / EPOCH + 1
}

/// Auctions that there are at event `n`, at least one.
fn auctions(n: i64) -> i64 {
    (AUCTIONS * (n / EPOCH) + (n % EPOCH).min(AUCTIONS)).max(1)
}

fn number(n: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = n;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

pub(super) mod person {
    use super::*;

    pub(in super::super) fn id(n: i64) -> i64 {
        FIRST_ID + n / EPOCH
    }

    pub(in super::super) fn name(n: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(FIRST_NAMES[index(n, 0, FIRST_NAMES.len())].as_bytes());
        out.push(b' ');
        out.extend_from_slice(LAST_NAMES[index(n, 1, LAST_NAMES.len())].as_bytes());
    }

    pub(in super::super) fn email_address(n: i64, out: &mut Vec<u8>) {
        letters(n, 2, 7, out);
        out.push(b'@');
        letters(n, 3, 5, out);
        out.extend_from_slice(b".com");
    }

    pub(in super::super) fn credit_card(n: i64, out: &mut Vec<u8>) {
        for group in 0..4 {
            if group > 0 {
                out.push(b' ');
            }
            let digits = below(n, 4 + group, 10_000);
            for power in [1000, 100, 10, 1] {
                out.push(b'0' + (digits / power % 10) as u8);
            }
        }
    }

    pub(in super::super) fn city(n: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(CITIES[index(n, 8, CITIES.len())].as_bytes());
    }

    pub(in super::super) fn state(n: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(STATES[index(n, 9, STATES.len())].as_bytes());
    }

    pub(in super::super) fn extra(n: i64, out: &mut Vec<u8>) {
        letters(n, 64, 70 + index(n, 10, 61), out);
    }
}

pub(super) mod auction {
    use super::*;

    pub(in super::super) fn id(n: i64) -> i64 {
        FIRST_ID + auctions(n) - 1
    }

    pub(in super::super) fn item_name(n: i64, out: &mut Vec<u8>) {
        letters(n, 64, 20, out);
    }

    pub(in super::super) fn description(n: i64, out: &mut Vec<u8>) {
        letters(n, 80, 100, out);
    }

    pub(in super::super) fn initial_bid(n: i64) -> i64 {
        price(n, 0)
    }

    pub(in super::super) fn reserve(n: i64) -> i64 {
        price(n, 0) + price(n, 2)
    }

    pub(in super::super) fn seller(n: i64) -> i64 {
        let persons = persons(n);
        if below(n, 5, 4) > 0 {
            FIRST_ID + (persons - 1) / HOT * HOT
        } else {
            FIRST_ID + persons - 1 - below(n, 6, persons.min(ACTIVE_PERSONS))
        }
    }

    pub(in super::super) fn category(n: i64) -> i64 {
        10 + below(n, 7, 5)
    }

    pub(in super::super) fn extra(n: i64, out: &mut Vec<u8>) {
        letters(n, 128, 200 + index(n, 8, 151), out);
    }
}

pub(super) mod bid {
    use super::*;

    pub(in super::super) fn auction(n: i64) -> i64 {
        let auctions = auctions(n);
        if below(n, 0, 2) > 0 {
            FIRST_ID + (auctions - 1) / HOT * HOT
        } else {
            FIRST_ID + auctions - 1 - below(n, 1, auctions.min(OPEN_AUCTIONS))
        }
    }

    pub(in super::super) fn bidder(n: i64) -> i64 {
        let persons = persons(n);
        if below(n, 2, 4) > 0 {
            FIRST_ID + (persons - 1).min((persons - 1) / HOT * HOT + 1)
        } else {
            FIRST_ID + persons - 1 - below(n, 3, persons.min(ACTIVE_PERSONS))
        }
    }

    pub(in super::super) fn price(n: i64) -> i64 {
        super::price(n, 4)
    }

    /// The number of the channel: first the four that are hot.
    fn channel_number(n: i64) -> i64 {
        let hot = CHANNELS.len() as i64;
        if below(n, 6, 2) > 0 {
            below(n, 7, hot)
        } else {
            hot + below(n, 7, OTHER_CHANNELS)
        }
    }

    pub(in super::super) fn channel(n: i64, out: &mut Vec<u8>) {
        let channel = channel_number(n);
        match CHANNELS.get(channel as usize) {
            Some(hot) => out.extend_from_slice(hot.as_bytes()),
            None => {
                out.extend_from_slice(b"channel-");
                number(channel - CHANNELS.len() as i64, out);
            }
        }
    }

    pub(in super::super) fn url(model: &Model, n: i64, out: &mut Vec<u8>) {
        let channel = channel_number(n) as usize;
        let (from, to) = (model.url_ends[channel], model.url_ends[channel + 1]);
        out.extend_from_slice(&model.urls[from..to]);
    }

    pub(in super::super) fn extra(n: i64, out: &mut Vec<u8>) {
        letters(n, 64, 20 + index(n, 8, 41), out);
    }
}

/// What depends on the options, and the URLs of all channels.
#[derive(Debug)]
pub(super) struct Model {
    rate: i64,
    base: i64,
    /// `below` of the time that an auction is open, ms.
    open_ms: i64,
    urls: Vec<u8>,
    /// Where each URL begins, and the last one ends.
    url_ends: Vec<usize>,
}

impl Model {
    /// Events at `rate` a second from `base` on, ms.
    pub(super) fn new(rate: i64, base: i64) -> Self {
        let mut urls = Vec::new();
        let mut url_ends = vec![0];
        for x in 0..CHANNELS.len() as i64 + OTHER_CHANNELS {
            urls.extend_from_slice(b"https://www.nexmark.com/");
            for k in 0..3 {
                letters(x, k, 5, &mut urls);
                urls.push(b'/');
            }
            urls.extend_from_slice(b"item.htm?query=1");
            let channel = x - CHANNELS.len() as i64;
            if channel > 0 && channel % 10 > 0 {
                urls.extend_from_slice(b"&channel_id=");
                number(channel * 104_729 % 1_000_003, &mut urls);
            }
            url_ends.push(urls.len());
        }
        Self {
            rate,
            base,
            open_ms: (2 * (OPEN_AUCTIONS * EPOCH / AUCTIONS) * 1000 / rate).max(1),
            urls,
            url_ends,
        }
    }

    /// Event time of event `n`, ms.
    pub(super) fn time(&self, n: i64) -> i64 {
        self.base.wrapping_add(n.wrapping_mul(1000) / self.rate)
    }

    /// When the auction of event `n` closes, ms.
    pub(super) fn expires(&self, n: i64) -> i64 {
        self.time(n) + 1 + below(n, 4, self.open_ms)
    }

    /// Events that lie within `ms` of event time.
    pub(super) fn events_within(&self, ms: i64) -> i64 {
        ms.saturating_mul(self.rate) / 1000
    }
}
