-- Everything that is known of a key but its texts. The row stays when its document is deleted, so that fences go on growing.
CREATE TABLE checkpoints (
    -- In the order of its bytes, as all stores list keys.
    name text COLLATE "C" PRIMARY KEY,
    -- Grows with each write of anything under the key; a write says which one it goes on from.
    version bigint NOT NULL,
    -- The number of the last write of each that wrote last, newest first: whose connection broke finds there whether its own
    -- was made.
    writes bigint[] NOT NULL,
    -- The number of its document in `states`; none where there is no document.
    present bigint,
    -- The SHA-256 of that document.
    revision text,
    -- When anything was written last.
    updated timestamptz NOT NULL,
    -- The number of its last state.
    last bigint NOT NULL,
    -- Counts the tasks that followed each other under the key.
    task bigint NOT NULL,
    -- The last claim, as JSON, and its owner.
    claim text,
    owner text,
    -- The highest fence that was given out, also where the claim cannot be read.
    fence bigint NOT NULL,
    -- Of the document of this revision.
    fingerprints bytea
);

-- The documents: of each key the present one and its history. Bytes, since a text of PostgreSQL holds no NUL and has an encoding.
CREATE TABLE states (
    key text COLLATE "C" NOT NULL,
    -- Grows with each state of the key.
    number bigint NOT NULL,
    task bigint NOT NULL,
    is_pinned boolean NOT NULL,
    modified timestamptz NOT NULL,
    text bytea NOT NULL,
    PRIMARY KEY (key, number)
);

-- What saves dropped to stay within their limits, oldest first.
CREATE TABLE dropped (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL,
    -- Of item and text, so that each is kept once.
    digest text NOT NULL,
    item text NOT NULL,
    text bytea,
    UNIQUE (key, digest)
);

-- Damaged documents that a recovery replaced.
CREATE TABLE quarantine (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    text bytea NOT NULL,
    UNIQUE (key, digest)
);
