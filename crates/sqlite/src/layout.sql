-- Everything that is known of a key. The row stays when its document is deleted, so that fences go on growing.
CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- The row of its document in `states`; none where there is no document.
    present INTEGER,
    -- The number of its last state. Grows with each write of the document.
    last INTEGER NOT NULL DEFAULT 0,
    -- Counts the tasks that followed each other under the key.
    task INTEGER NOT NULL DEFAULT 0,
    -- The last claim, as JSON.
    claim TEXT,
    -- The highest fence that was given out, also where the claim cannot be read.
    fence INTEGER NOT NULL DEFAULT 0,
    fingerprints TEXT,
    -- The revision that they are of.
    fingerprints_of TEXT
) STRICT;

-- The documents: of each key the present one and its history. The id of the key, shifted left by 20 bits, and the place among
-- its states: so they lie together without an index, and a new state takes the place of the one that is too old.
CREATE TABLE states (
    id INTEGER PRIMARY KEY,
    -- Grows with each write of the document.
    number INTEGER NOT NULL,
    task INTEGER NOT NULL,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    -- When it was written, in microseconds since 1970.
    modified INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;

-- What saves dropped to stay within their limits, oldest first.
CREATE TABLE dropped (
    id INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    -- Of item and text, so that each is kept once.
    digest TEXT NOT NULL,
    item TEXT NOT NULL,
    text TEXT,
    UNIQUE (key, digest)
) STRICT;
CREATE INDEX dropped_of_key ON dropped (key);

-- Damaged documents that a recovery replaced.
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    digest TEXT NOT NULL,
    text BLOB NOT NULL,
    UNIQUE (key, digest)
) STRICT;
