# Recursion to its limit, coroutines, large strings, an error that is caught, a program that is run.
proc deep {n} { return [expr {[deep [incr n]] + 1}] }
puts [catch {deep 0} why]
puts [string range $why 0 24]
coroutine counts apply {{} { for {set i 0} {1} {incr i} { yield [string length [string repeat x [expr {$i * 40000}]]] } }}
set sum 0
for {set i 0} {$i < 40} {incr i} { incr sum [counts] }
puts $sum
puts [exec echo from a program]
catch {exec sh -c {kill -SEGV $$}} why options
puts [lrange [dict get $options -errorcode] 2 2]
exit 4
