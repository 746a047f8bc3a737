-- Everything that is known of a key. The row stays when its document is deleted, so that fences go on growing.
CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- Whether there is a document: the state with the number `last`.
    is_present INTEGER NOT NULL DEFAULT 0,
    last INTEGER NOT NULL DEFAULT 0,
    -- Counts the tasks that followed each other under the key.
    task INTEGER NOT NULL DEFAULT 0,
    -- The last claim, as JSON.
    claim TEXT,
    fingerprints TEXT
) STRICT;
CREATE INDEX present_keys ON keys (name) WHERE is_present;

-- The documents: of each key the present one and its history.
CREATE TABLE states (
    id INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    -- Grows with each write of the key.
    number INTEGER NOT NULL,
    task INTEGER NOT NULL,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    -- When it was written, in microseconds since 1970.
    modified INTEGER NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (key, number)
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
