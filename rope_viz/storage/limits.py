"""The numeric limits of a server and of the processes that work for it; a name says its unit where it is no number.

`python tools/limits_table.py` makes the tables of `docs/serving.md` from them. A visitor is a network address.
"""

# Open pages, and what they send

OPEN_PAGES = 208
"""Pages that may be open. A classroom of 100 may have one address."""
SHARE_OF_PAGES = 2
"""One visitor has at most this part of the open pages and of the bytes of messages: a half."""
FEW_PAGES = 8
"""A visitor with fewer pages may take one of the last places, or that of the quietest page of one with more."""
RESERVED_PAGES = 16
"""The last places, which are for visitors with few pages."""
FIRST_RUN_SECONDS = 15.0
"""Seconds within which a page must ask for its first run. A browser does so at once."""
LOST_SESSION_SECONDS = 20.0
"""Seconds for which a page that lost its connection keeps its session."""
LOST_SESSIONS = 48
"""Sessions that wait for their page."""
MESSAGE_BYTES = 6 << 20
"""Bytes of one message from a page: a pasted config, and the values of all other controls."""
ALL_MESSAGE_BYTES = 12 << 20
"""Bytes of the last messages of all open pages and of the texts in their fields, which Streamlit keeps as state."""
MESSAGE_FRAMES = 1000
"""Parts of one message. Browsers send parts of some 100 KiB."""
MESSAGE_BURST, MESSAGE_RATE = 120.0, 60.0
"""What one page may send at once, and per second: two seconds of the fastest drag, and then that drag for ever.

A run of a page waits for its turn anyway (`page_runs.py`), and joins what waits already. So a short message costs only
some 0.2 ms of the event loop: measured with ten pages that sent 60 a second each, another visitor's health check took
at most 0.5 s on a machine with a load of ten.
"""
MESSAGE_BURST_OF_VISITOR, MESSAGE_RATE_OF_VISITOR = 1200.0, 240.0
"""The same for one visitor. 120 pages that open at once send about five messages each.

A class of 100 then sends some one a second each.
"""
COST_OF_BYTE, COST_OF_TEXT_BYTE = 1 / (2 << 10), 1 / (64 << 10)
"""What a byte costs up to `COMPONENT_VALUE`, where it may be one of thousands of widgets, and above, where it is text.

So the largest config is still part of the first burst.
"""
TEXT_FIELD_CHARACTERS = 100_000
"""Characters of the largest text field of a page."""
TEXT_FIELD_BYTES = 4 * TEXT_FIELD_CHARACTERS
"""Bytes of a text field in UTF-8. Streamlit then applies the `max_chars` of the field itself."""
COMPONENT_VALUE = 64 << 10
"""Bytes of the value that a component sends, and of a message whose parts need no look."""
COMPONENT_COMMAS = 500
"""Commas in it outside of texts: a link has some thirty."""
COMPONENT_BRACKETS = 20
"""Brackets in it outside of texts: no message has more than six."""
COMPONENT_NUMBER_CHARACTERS = 16 << 10
"""Characters in it outside of texts."""
COMPONENT_NAME_CHARACTERS = 40
"""Characters of a message's name, such as "frequencies/wavelengths present"."""
CONTENT_NAMES, CONTENT_NAME_CHARACTERS = 32, 43
"""Names of stored contents in a message, and the characters of each (`own_files/blob_store.py`)."""
LARGEST_WHOLE_NUMBER = 2**53
"""The largest whole number that JavaScript counts exactly; times in milliseconds are below it."""
WHOLE_NUMBER_DIGITS = 20
"""Digits of a whole number, with its sign."""

# Runs of pages

PAGE_RUNS_AT_ONCE = 4
"""Runs at once. They share one interpreter, so more of them only make each slower, and the event loop with them.

Measured on two cores while ten tabs sent 160 messages a second: with 8 (6 of one visitor) another visitor's page took
0.5 s as a median, with 4 (3) 0.24 s. The tabs' own runs were as many.
"""
PAGE_RUNS_OF_VISITOR = 3
"""Runs of one visitor at once, so that a newcomer finds a place free."""
PAGE_THREADS = 16
"""Threads for runs: room for those that wait for a reading, or do not end."""
PAGE_THREADS_OF_VISITOR = 5
"""Threads of one visitor: three visitors whose readings take long leave one for a fourth."""
STUCK_RUN_SECONDS = 30.0
"""Seconds after which a run does not count as one of `PAGE_RUNS_AT_ONCE`."""
UNDISTURBED_RUN_SECONDS = 0.3
"""Seconds for which a newer message does not interrupt a run. Most runs take a tenth of this."""
EVENT_LOOP_SECONDS = 5.0
"""Seconds that a thread waits for the event loop to take what its run has sent."""

# What a session and its browser keep

REMEMBERED_CONFIGS = 8
"""The user's files that a session remembers, for Back."""
REMEMBERED_CONFIG_BYTES = 8 << 20
"""Bytes in memory of the files that all sessions remember."""
REMEMBERED_CONFIG_BYTES_OF_VISITOR = REMEMBERED_CONFIG_BYTES // 2
"""Bytes in memory of the files that the sessions of one visitor remember."""
REMEMBERED_ADDRESSES = 20
"""Earlier addresses that a session remembers, because the browser may still send them."""
SESSION_CONTENT_BYTES = 64 << 10
"""Bytes of a content that a session keeps itself; a larger one is in the store only."""
BROWSER_CONTENT_BYTES = 3 << 20
"""Bytes of a content that a browser stores: a tab's storage holds about five million characters."""

# Dropped files

DROPPED_FILE_MIB = 64
"""MiB of a dropped config as Streamlit sees it: far above ours, because Streamlit rejects files without a message."""
UPLOAD_BYTES = 48 << 20
"""Bytes of all uploaded files that no page has taken yet."""
UPLOAD_BYTES_OF_VISITOR = 32 << 20
"""Bytes of one visitor's: one file of the largest size that Streamlit's settings allow."""
NUMBERS_FILE_BYTES = 4 << 20
"""Bytes of a file of numbers that one command wrote. A search of 100 points takes 100 kB."""
MEASURED_FILE_BYTES = 32 << 20
"""Bytes of a file that `rope-viz measure` wrote."""

# Addresses and requests

ADDRESS_CHARACTERS = 16_000
"""Characters of the query of an address, and so of a list or line that goes into one. A longer query of a page is
read as empty."""
WRITTEN_ADDRESS_CHARACTERS = 2000
"""Characters of a query that the app writes; a longer spec is stored under a name instead."""
VARIANT_CHARACTERS = 4000
"""Characters of a pinned curve in an address."""
QUERY_CONTENTS = 16
"""Stored contents that one query may name."""
REQUEST_CONTENTS = 32
"""Stored contents that one request may carry: more than a session has."""
REQUEST_BYTES = 48 << 20
"""Bytes of the contents of one request: the largest one, and smaller ones."""

# Request bodies

ARRIVING_BODIES = 32
"""Bodies that may arrive at once."""
ARRIVING_BYTES = 64 << 20
"""Bytes of all arriving bodies."""
SHARE_OF_BODIES = 4
"""One visitor has at most this part of the bodies, a quarter, and of their bytes three times as much."""
SMALL_BODIES = 8
"""Small bodies that may arrive in addition, so that large ones do not keep them out."""
SMALL_BODY_BYTES = 256 << 10
"""Bytes of a small body: a config, typed vectors. Its length is known before it arrives."""
BODY_PAUSE_SECONDS = 15.0
"""Seconds after which a body ends if nothing arrives."""
BODY_GRACE_SECONDS = 30.0
"""Seconds that every body may take."""
BODY_RATE = 16 << 10
"""Bytes per second that a body must have on average beyond `BODY_GRACE_SECONDS`."""
BODY_SECONDS = 120.0
"""Seconds that a body may take at most: the largest one in that time has 3 Mbit/s."""
SLOW_BODY_RATE = 64 << 10
"""Bytes per second below which a body may be ended in favour of another one."""
SLOW_BODY_SECONDS = 5.0
"""Seconds from which on a body's speed counts. Its speed is that of about the last so many seconds."""
LINGER_SECONDS, LINGER_PAUSE_SECONDS = 10.0, 1.0
"""Seconds for which the rest of a refused body is read and dropped, in all and without a byte.

A connection that is closed with unread bytes is reset, and its client may lose the answer.
"""
LINGERING_BODIES, LINGERING_BODIES_OF_VISITOR = 64, 16
"""Refused bodies whose rest is read at the same time, and those of one visitor; others may lose the answer."""

# Answers

ANSWER_PART_BYTES = 64 << 10
"""Bytes of one part. The server keeps about two of them for each client until the client has taken them."""
ANSWER_PARTS_AT_ONCE = 8
"""Parts that are sent before the event loop looks for other work: hundreds of clients may want one large answer."""
ANSWER_IDLE_SECONDS = 30
"""Seconds after which the system closes a connection whose client takes nothing (`server.lifespan`)."""
ANSWER_GRACE_SECONDS = 30.0
"""Seconds that every answer may take to be read."""
ANSWER_RATE = 8 << 10
"""Bytes per second that a client must take on average beyond `ANSWER_GRACE_SECONDS`."""
ANSWER_SECONDS = 600.0
"""Seconds that an answer may take at most to be read."""
UNREAD_ANSWER_BYTES = 8 << 20
"""Bytes of large answers that clients are still reading, each counted once for all its clients."""
UNREAD_ANSWER_SECONDS = 5.0
"""Seconds for which an answer is not ended in favour of others."""
STATIC_FILE_BYTES = 16 << 20
"""Bytes of compressed files in the cache; all of Streamlit's files take half of it."""
LEAST_COMPRESSED_BYTES = 500
"""Bytes of the smallest file that is compressed."""

# The user's own config

CONFIG_BYTES = 4 << 20
"""Bytes without long lists. A config.json is a few kilobytes; anything beyond is another file."""
CONFIG_FILE_BYTES = 32 << 20
"""Bytes with long lists. Those of a quantised model with many experts take several megabytes."""
SHORT_LIST_BYTES = 16 << 10
"""Bytes of a list that is never left out."""
PATH_CHARACTERS = 1000
"""Characters of a key with those above it. A long key above many others would make paths of gigabytes."""
REPAIRED_CHARACTERS = 1 << 20
"""Characters of a repaired text: longer ones are refused, because the repair looks at each comma and string."""
NAME_CHARACTERS = 100
"""Characters of the name of a type. The longest published model type has 31, the longest name of a class 63."""
JSON_LEVELS = 100
"""Levels of nesting of a JSON text. The deepest published config has seven."""
CONFIG_LEVELS = 32
"""Levels of nesting of a user's config."""
CONFIG_KEYS = 1000
"""Keys of one object in it."""
CONFIG_VALUES = 4096
"""Values in one list or object: a longer one is read as empty. No config that RoPE needs has lists of a thousand."""
NAMED_KEYS = 20
"""Keys that one sentence names."""
CHECK_SECONDS = 2.0
"""Processor time of the check of a config: the pages compute as much, in the server."""
LINK_CHARACTERS = 4000
"""Characters of a config in a link; a link to a larger config carries its numbers only."""
LINK_JSON_BYTES = 32 << 10
"""Bytes of JSON that a config in a link may decompress to."""
LINK_CONFIG_BYTES = 8 << 20
"""Bytes of the configs of links that a process keeps."""
LINK_RESULT_BYTES = 256 << 10
"""Bytes that count for what is computed from the config of a link later."""
RESULTS_OF_FUNCTION = 16
"""Results of one function that a config holds."""

# Stored contents

CONTENT_BYTES = 40 << 20
"""Bytes of one content, above the largest readable file of vectors."""
STORED_CONFIG_BYTES = 3 * CONFIG_BYTES
"""Bytes of a config or spec as it is stored: two bytes of UTF-8 become six as JSON in ASCII."""
STORE_BYTES = 128 << 20
"""Bytes of all contents and their decoded values; beyond this, the least recently used ones are evicted."""
SHARE_OF_STORE = 4
"""One visitor's contents take at most this part of the store, a quarter, or are a single one."""
CONTENT_OVERHEAD_BYTES = 1 << 10
"""Bytes that each content counts in addition to its own: its name and its place in the store."""

# Readings of what comes from outside

READINGS_AT_ONCE = 2
"""Contents that are read at once; one of the places is only for small ones."""
WAITING_READINGS = 256
"""Readings of one visitor that may wait, and half of all: a class behind one address opens a link together."""
SMALL_READING_BYTES = 64 << 10
"""Bytes of a small content. A link always is one."""
LARGE_VALUE_BYTES = 8_000_000
"""Bytes of a value above which it does not come into the server process for a picture."""
READ_OBJECTS = 1 << 20
"""Objects of a value that was read: the server takes some 0.1 s for so many, without doing anything else."""
READING_SECONDS = 5
"""Processor time of reading one content."""
READING_MEMORY = 512 << 20
"""Bytes that a process that reads contents may allocate after it has started (Linux)."""
READING_REST = 64 << 20
"""Bytes allocated after a reading above which its process ends, because libraries keep freed memory."""
READING_GRACE_SECONDS = 1.0
"""Seconds that a reading goes on after its client has left: a new process costs more than most readings."""
BROWSER_LOOK_SECONDS = 0.5
"""Seconds after which a waiting session looks whether its browser is still there."""

# Pictures

PICTURES_AT_ONCE = 2
"""Pictures that the server process renders at a time; page runs need their share of the CPU.

One more is rendered for a visitor who has none, so that one visitor's slow pictures do not keep others waiting.
"""
WAITING_PICTURES = 128
"""Pictures of one visitor that may wait, and half of all; further requests are answered with 503 and Retry-After."""
PICTURE_BYTES = 32 << 20
"""Bytes of rendered pictures: those in the cache, and those that clients are reading (`UNREAD_ANSWER_BYTES`)."""
SMALL_PICTURE_BYTES = 64 << 10
"""Bytes of stored contents up to which a page's picture is rendered in the server process."""
RENDER_WORKERS = 4
"""Processes that render pictures under load, on machines with as many cores."""
PICTURES_OF_WORKER = 2
"""Pictures assigned to each worker: one being rendered and one ready to start."""
LATE_PICTURE_SECONDS = 0.2
"""Seconds in the queue after which a picture counts as late."""
LATE_PICTURES, LATE_PICTURES_SECONDS = 20, 10.0
"""Workers start after this many late pictures within this many seconds."""
WORKER_IDLE_SECONDS = 60.0
"""Seconds without a picture after which the workers end."""
WORKER_RETRY_SECONDS = 60.0
"""Seconds after a loss of workers before new ones may start."""
LONG_JOBS_AT_ONCE = 2
"""Pictures that can take long, at a time."""
LONG_JOBS_OF_VISITOR = 1
"""Pictures of one visitor that can take long, at a time."""
JOB_SECONDS = 60
"""Processor time of one such picture, all threads together (not on Windows)."""
JOB_MEMORY = 1 << 30
"""Bytes that a process that renders pictures may allocate after it has started (Linux)."""
JOB_REST = 200 << 20
"""Bytes allocated after a job above which its process ends, because libraries keep freed memory."""
JOB_CONTENT_BYTES = 96 << 20
"""Bytes of contents and decoded values that the process keeps for the next job: one of the largest files, decoded."""
JOB_IDLE_SECONDS = 60.0
"""Seconds without a job after which a process ends."""

# Measurements

MEASUREMENT_SECONDS = 240.0
"""Seconds of one measurement in a process of its own."""
MODEL_RUN_MEMORY = 3 << 30
"""Bytes that a process that runs a model may allocate (Linux; elsewhere nothing is limited)."""
MODEL_RUN_NICENESS = 10
"""Lower priority of that process, so that the server answers other users first."""

# The server process itself

THREAD_SWITCH_SECONDS = 0.001
"""Seconds after which a thread that computes lets the event loop go on, which waits for it after each system call.

Python's own 5 ms make a request with four calls 20 ms slower while a picture is rendered.
"""
LARGE_BLOCK_BYTES = 4 << 20
"""Bytes from which memory is taken from the system and given back at once; glibc raises its own limit to 32 MiB."""
MEMORY_LOOK_SECONDS = 10.0
"""Seconds between two looks at the memory."""
MEMORY_GROWTH_BYTES = 24 << 20
"""Bytes that the process must have grown by before it looks for free memory."""

# Processes, files and other servers

PROCESS_END_SECONDS = 5.0
"""Seconds that a process may take to end after it has closed its output."""
TEXT_FILE_BYTES = 16 << 20
"""Bytes of a text, such as a list of names or the settings of a project."""
PIPE_WRITER_SECONDS = 5.0
"""Seconds after which a named pipe that nobody opened for writing is given up."""
PIPE_SILENCE_SECONDS = 30.0
"""Seconds after which a pipe that is open, but brings nothing, is given up."""
WRITE_SECONDS = 24 * 3600
"""Seconds after which a temporary file belongs to no write any more, on any machine."""
FETCHED_ANSWER_BYTES = 4 << 20
"""Bytes of an answer about a model or a server: its list of models, its properties, one completion."""
FETCHED_ERROR_BYTES = 2000
"""Bytes that are read of an answer that is an error. They are only shown."""
