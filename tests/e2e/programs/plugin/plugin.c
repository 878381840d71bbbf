/* A library for dlopener; built by the test with gcc -shared. */
#include "../burn.h"

BURNER(plugin_work)
