-- Binary trees, queens and a sort of strings; more than a little of each.
local function tree(depth)
	if depth == 0 then return {} end
	return { tree(depth - 1), tree(depth - 1) }
end
local function count(t)
	return t[1] and 1 + count(t[1]) + count(t[2]) or 1
end
local nodes = 0
for _ = 1, 60 do nodes = nodes + count(tree(10)) end

local found, column = 0, {}
local function place(row, n)
	if row > n then found = found + 1 return end
	for i = 1, n do
		local free = true
		for j = 1, row - 1 do
			local d = column[j] - i
			if d == 0 or d == j - row or d == row - j then free = false break end
		end
		if free then column[row] = i place(row + 1, n) end
	end
end
for _ = 1, 10 do place(1, 7) end

local words = {}
for i = 1, 28500 do words[i] = string.format("%d:%s", i * 7919 % 100003, ("x"):rep(i % 9)) end
table.sort(words)
print(nodes, found, words[1])
