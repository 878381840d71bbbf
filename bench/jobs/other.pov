// Another input for povray: solids cut out of solids, glass, wood, fog, a height field of a function.
#version 3.7;
global_settings { assumed_gamma 1 max_trace_level 6 }
camera { location <3, 5, -10> look_at <0, 1, 0> }
light_source { <8, 14, -12> rgb 1 }
light_source { <-6, 9, -4> rgb 0.5 spotlight point_at 0 radius 20 falloff 30 }
fog { distance 60 rgb 0.7 }
plane { y, 0 pigment { wood color_map { [0 rgb <0.6, 0.4, 0.2>] [1 rgb <0.3, 0.2, 0.1>] } turbulence 0.2 } }
#declare Part = difference { box { -1, 1 } sphere { 0, 1.25 } cylinder { -2 * y, 2 * y, 0.6 } }
#declare I = 0;
#while (I < 9)
	object {
		Part rotate <I * 20, I * 35, 0> translate <mod(I, 3) * 3 - 3, 1.5, div(I, 3) * 3 - 2>
		pigment { granite scale 0.5 } finish { phong 0.5 }
	}
	torus { 1.2, 0.2 rotate <I * 40, 0, 20> translate <mod(I, 3) * 3 - 3, 1.5, div(I, 3) * 3 - 2>
		pigment { rgbf <0.9, 0.95, 1, 0.8> } interior { ior 1.4 } finish { reflection 0.1 specular 0.6 } }
	#declare I = I + 1;
#end
blob { threshold 0.6 sphere { <-1, 3, -3>, 1.2, 1 } sphere { <0, 3.4, -3>, 1, 1 } cylinder { <0, 3, -3>, <1.5, 3, -3>, 0.6, 1 }
	pigment { agate } }
