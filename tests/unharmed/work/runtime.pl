# Deep recursion, a signal handler, children, large strings, an exception.
use strict; $| = 1; no warnings 'recursion';
sub deep { my $n = shift; return $n ? 1 + deep($n - 1) : 0 }
print deep(50_000), "\n";
my $ticks = 0;
$SIG{ALRM} = sub { $ticks++; my $x = "x" x 200_000 };
for (1 .. 20) { kill 'ALRM', $$ }
print "$ticks\n";
my %count; $count{$_ % 997} .= 'y' x 50 for 1 .. 200_000;
print scalar(keys %count), "\n";
my $child = fork; if (!$child) { exit 11 }
waitpid $child, 0; print $? >> 8, "\n";
eval { die { why => 'thrown' } }; print $@->{why}, "\n";
print `echo from a shell`;
kill 'TERM', $$; sleep 1;
