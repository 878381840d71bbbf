#include "image/demangle.h"

#include "image/workshop.h"

static void expect(const char *mangled, const char *readable)
{
	char *name = demangle(mangled);
	if (readable) {
		assert_non_null(name);
		assert_string_equal(name, readable);
	} else {
		assert_null(name);
	}
	free(name);
}

static void test_plain_names(void **state)
{
	(void)state;
	expect("main", NULL);
	expect("", NULL);
	expect("_Z", NULL);
	expect("_Znonsense", NULL);
	expect("puts@plt", NULL);
}

static void test_cxx(void **state)
{
	(void)state;
	expect("_ZNSt6vectorIiSaIiEE9push_backERKi",
		"std::vector<int, std::allocator<int> >::push_back(int const&)");
	expect("_Znwm", "operator new(unsigned long)");
	expect("_ZN3foo3barEv.part.0", "foo::bar() [clone .part.0]");
}

static void test_versions(void **state)
{
	(void)state;
	expect("memcpy@@GLIBC_2.14", "memcpy");
	expect("memcpy@GLIBC_2.2.5", "memcpy");
	expect("_Znwm@@GLIBCXX_3.4", "operator new(unsigned long)");
	expect("_Znwm@plt", "operator new(unsigned long)@plt");
}

static void test_rust(void **state)
{
	(void)state;
	expect("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	expect("_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Debug$GT$"
	       "3fmt17h0123456789abcdefE",
		"<alloc::string::String as core::fmt::Debug>::fmt");
	expect("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123", "core::fmt::write");
	expect("_ZN1a17h0123456789abcdeE", NULL);
	expect("_ZN4core6h_coreEv", "core::h_core()");
}

/* pair<pair<...>, pair<...> > by back references: 260 letters would become half a gigabyte. */
static void test_explosion(void **state)
{
	(void)state;
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1f1aIiiE";
	for (int i = 0; i < 24; i++) {
		char ref[8], piece[32];
		int n = 2 * i; /* S0_ is a<int, int>, then every second */
		if (n < 36)
			snprintf(ref, sizeof ref, "S%c_", digits[n]);
		else
			snprintf(ref, sizeof ref, "S1%c_", digits[n - 36]);
		snprintf(piece, sizeof piece, "1%cI%s%sE", 'b' + i % 20, ref, ref);
		strcat(name, piece);
	}
	expect(name, NULL);
}

static void test_long_names(void **state)
{
	(void)state;
	char name[8192];
	memset(name, 'a', sizeof name);
	memcpy(name, "_Z8000", 6);
	name[sizeof name - 1] = 0;
	expect(name, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_names),
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_explosion),
		cmocka_unit_test(test_long_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
