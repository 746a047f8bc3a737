-- The ledger of each key: lines that are only ever added, whatever becomes of the documents.
CREATE TABLE ledger (
    key text COLLATE "C" NOT NULL,
    -- Counts from 0.
    position bigint NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (key, position)
);
