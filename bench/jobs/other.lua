-- Another input for lua: matrices, string patterns, coroutines, metatables.
local n, a, b, c = 110, {}, {}, {}
for i = 1, n do a[i], b[i], c[i] = {}, {}, {} for j = 1, n do a[i][j], b[i][j] = i * j % 7, i + j end end
for i = 1, n do for j = 1, n do local s = 0 for k = 1, n do s = s + a[i][k] * b[k][j] end c[i][j] = s end end
local text, words = {}, {}
for i = 1, 40000 do text[i] = ("w%d=%x;"):format(i % 977, i * 31) end
for k, v in table.concat(text):gmatch("(%w+)=(%x+);") do words[k] = (words[k] or 0) + tonumber(v, 16) end
local point = {} point.__index = point
point.__add = function(p, q) return setmetatable({ x = p.x + q.x, y = p.y - q.y }, point) end
local sum = setmetatable({ x = 0, y = 0 }, point)
local make = coroutine.wrap(function() for i = 1, 200000 do coroutine.yield(setmetatable({ x = i, y = i % 3 }, point)) end end)
for _ = 1, 200000 do sum = sum + make() end
local swapped = table.concat(text):sub(1, 200000):gsub("%d+", function(d) return d:reverse() end)
print(c[17][23], words.w5, sum.x, #swapped)
