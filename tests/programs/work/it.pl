my (%count, @lines);
open my $file, '<', 'numbers.txt' or die;
while (<$file>) { my ($a, $b) = split; $count{$b} += $a; push @lines, "$b:$a" if /99/; }
my $text = join ',', sort { length $a <=> length $b || $a cmp $b } @lines;
print scalar(keys %count), ' ', $text =~ tr/9//, ' ', unpack('%32C*', $text), "\n";
my $pid = fork; if (!$pid) { print "child\n"; exit 3 } waitpid $pid, 0; print $? >> 8, "\n";
