# Hashes, regular expressions and sorts.
use strict;
my $total = 0;
my $seed = 42;
for my $round (1 .. 2) {
	my (%sum, @kept);
	for my $i (1 .. 500_000) {
		$seed = ($seed * 1103515245 + 12345) % 2147483648;
		$sum{"k" . (($seed >> 8) % 50_000)} += $i;
		push @kept, $seed if $i % 3 == 0;
	}
	for my $key (sort keys %sum) {
		$total++ if $key =~ /^k\d*(7|13)\d+9$/;
		$key =~ s/(\d)(\d)/$2$1/g;
		$total += length $key;
	}
	@kept = sort { $a <=> $b } @kept;
	$total += $kept[1000];
}
print "$total\n";
