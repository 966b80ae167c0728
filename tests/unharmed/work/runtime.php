<?php
// A limit on its time (a timer of the interpreter's own), a loop, sorting, exceptions, memory that is refused.
set_time_limit(60);
$sum = 0;
for ($i = 0; $i < 3000000; $i++) { $sum = ($sum * 31 + $i) % 1000003; }
echo "$sum\n";
$words = [];
for ($i = 0; $i < 50000; $i++) { $words[] = md5((string)$i); }
sort($words);
echo $words[0], " ", strlen(str_repeat("x", 5000000)), "\n";
try { (function (int $x) {})("no number"); } catch (TypeError $e) { echo get_class($e), "\n"; }
try { echo intdiv(1, 0); } catch (DivisionByZeroError $e) { echo $e->getMessage(), "\n"; }
exit(8);
