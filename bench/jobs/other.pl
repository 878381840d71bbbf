# Another input for perl: parsing, matrices, closures, formats.
use strict;
use warnings;
my ( $seed, %seen, @rows ) = (7);
sub draw { $seed = ( $seed * 1103515245 + 12345 ) % 2147483648; return ( $seed >> 8 ) % $_[0] }
for my $i ( 1 .. 30000 ) {
	my $line = join ',', map { draw(1000) } 1 .. 6;
	push @rows, [ split /,/, $line ];
	$seen{ substr $line, 0, 5 }++ if $line =~ /^(\d+),(\d)\d*/ && $1 > $2;
}
my @sorted = sort { $a->[2] <=> $b->[2] || $a->[0] <=> $b->[0] } @rows;
my %by = ( sum => sub { my $s = 0; $s += $_ for @_; $s }, most => sub { my $m = 0; $_ > $m and $m = $_ for @_; $m } );
my $text = '';
$text .= sprintf "%05d %-8s|", $by{ $_ % 2 ? 'sum' : 'most' }->( @{ $sorted[$_] } ), reverse "$_" for 0 .. $#sorted;
my ( @m, @n ) = ();
for my $i ( 0 .. 59 ) { $m[$i] = [ map { $i * $_ % 7 } 0 .. 59 ] }
for my $i ( 0 .. 59 ) { for my $j ( 0 .. 59 ) { my $s = 0; $s += $m[$i][$_] * $m[$_][$j] for 0 .. 59; $n[$i][$j] = $s } }
( my $packed = pack 'N*', map { $_->[3] } @rows ) =~ tr/\0-\x0f/a-p/;
print length($text), ' ', scalar( keys %seen ), " $n[17][23] ", unpack( '%32C*', $packed ), "\n";
