# Rates of one second each, then digests that are the same everywhere.
openssl speed -seconds 1 -bytes 8192 -evp aes-256-gcm 2>&1
openssl speed -seconds 1 -bytes 8192 sha256 2>&1
openssl dgst -sha3-512 numbers.txt
openssl enc -aes-256-ctr -K 00 -iv 00 -in numbers.txt 2>/dev/null |
    openssl dgst -md5
