# Hashes, regular expressions and sorts; more than a little of each.
use strict;
my ($total, $seed) = (0, 42);
for my $round (1 .. 4) {
	my (%sum, @kept);
	for my $i (1 .. 10600) {
		$seed = ($seed * 1103515245 + 12345) % 2147483648;
		$sum{"k" . (($seed >> 8) % 2650)} += $i;
		push @kept, $seed if $i % 3 == 0;
	}
	for my $key (sort keys %sum) {
		$total++ if $key =~ /^k\d*(7|13)\d+9$/;
		$key =~ s/(\d)(\d)/$2$1/g;
		$total += length $key;
	}
	@kept = sort { $a <=> $b } @kept;
	$total += $kept[265];
}
print "$total\n";
