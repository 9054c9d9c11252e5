"""Files and contents from outside: writing a file whole or not at all, and decoding JSON safely."""
