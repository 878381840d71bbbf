// Marbled spheres over a mirror, soft shadows and an isosurface.
#version 3.7;
#include "functions.inc"
global_settings { assumed_gamma 1 max_trace_level 8 }
camera { location <0, 4, -12> look_at 0 }
light_source { <12, 18, -9> rgb 1 area_light <3, 0, 0>, <0, 3, 0>, 4, 4 }
light_source { <-9, 7, -8> rgb 0.4 }
plane { y, -2 pigment { checker rgb 0.9 rgb 0.2 } finish { reflection 0.2 } }
#declare Chance = seed(11);
#declare I = 0;
#while (I < 120)
	sphere {
		<rand(Chance) * 12 - 6, rand(Chance) * 5 - 2, rand(Chance) * 12 - 4>, 0.5
		pigment {
			marble
			color_map { [0 rgb <rand(Chance), rand(Chance), rand(Chance)>] [1 rgb 1] }
			turbulence 1 scale 0.3
		}
		finish { phong 0.8 reflection 0.25 }
		normal { bumps 0.3 scale 0.1 }
	}
	#declare I = I + 1;
#end
isosurface {
	function { x * x + y * y + z * z - 2 + f_noise3d(x * 3, y * 3, z * 3) }
	contained_by { box { -2, 2 } }
	max_gradient 5
	pigment { rgb <0.8, 0.5, 0.3> }
	translate <0, 1, -3>
}
